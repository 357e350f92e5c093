
# Added by RankTilt: texts such as "openai:m(te hold quotes, colons and parentheses, at which bash breaks a word.
_ranktilt_whole_words() {
  local rest="${COMP_LINE:0:COMP_POINT}" last="${COMP_WORDS[COMP_CWORD]}" piece index
  local -a words=()
  for ((index = 0; index <= COMP_CWORD; index++)); do
    piece="${COMP_WORDS[index]}"
    if [[ $index -gt 0 && "$rest" != [[:space:]]* ]]; then
      words[${#words[@]}-1]+="$piece"
    else
      words+=("$piece")
    fi
    rest="${rest#"${rest%%[![:space:]]*}"}"
    rest="${rest#"$piece"}"
  done
  local whole="${words[${#words[@]}-1]}" quote=""
  if [[ "$whole" == [\"\']* ]]; then
    quote="${whole:0:1}"
    whole="${whole:1}"
    last="${last#"$quote"}"
  fi
  words[${#words[@]}-1]="$whole"
  COMP_WORDS=("${words[@]}")
  COMP_CWORD=$((${#words[@]} - 1))
  _ranktilt "$@"
  # What bash replaces is the last piece alone; within quotes nothing is escaped.
  local before="${whole%"$last"}" candidate
  for index in "${!COMPREPLY[@]}"; do
    candidate="${COMPREPLY[index]}"
    [[ -n "$quote" || -n "$before" ]] && candidate="${candidate//\\/}"
    COMPREPLY[index]="${candidate#"$before"}"
  done
  [[ ${#COMPREPLY[@]} -eq 1 && "${COMPREPLY[0]}" == *[=:] ]] && compopt -o nospace
  return 0
}

complete -F _ranktilt_whole_words ranktilt
