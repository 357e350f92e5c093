"use strict";
// Words of texts, and which of them two texts do not share. Plain values in and out: nothing here touches the page.
window.ranktilt.differences = (() => {
  // Where words are not parted by spaces, each character is one.
  const ALONE = "\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Katakana}\\p{Script=Thai}";
  const WORD = new RegExp(`[${ALONE}]|[\\p{L}\\p{N}](?:(?![${ALONE}])[\\p{L}\\p{N}\\p{M}]|['’](?=[\\p{L}\\p{N}]))*`, "gu");
  // A search for the shortest script stops after so many edits and goes on from the best place it has reached.
  const MOST_EDITS = 1500;
  const COMMON = new Set(
    ("a an and are as at be but by can did do does for from had has have how if in into is it its no not of on or so " +
      "than that the their there these they this to was were what when where which who why will with would you your")
      .split(" "),
  );

  const fold = (word) => word.normalize("NFKC").toLowerCase().replaceAll("’", "'");

  // [{from, to, key}]: places of the words of a text, and each as it is compared.
  const words = (text) =>
    [...text.matchAll(WORD)].map((found) => ({
      from: found.index,
      to: found.index + found[0].length,
      key: fold(found[0]),
    }));

  // The words of a query that are worth showing: all but the commonest, or all where there is nothing else.
  const telling = (query) => {
    const keys = words(query).map((word) => word.key);
    const rare = keys.filter((key) => !COMMON.has(key));
    return new Set(rare.length ? rare : keys);
  };

  // Where the two halves of a short way from one sequence to the other meet (Myers 1986, in linear room).
  const meeting = (a, b, [a0, a1, b0, b1], ahead, behind) => {
    const n = a1 - a0;
    const m = b1 - b0;
    const delta = n - m;
    const odd = delta % 2 !== 0;
    const middle = ahead.length >> 1;
    ahead[middle + 1] = 0;
    behind[middle + 1] = 0;
    for (let d = 0; ; d += 1) {
      const low = -(d - 2 * Math.max(0, d - m));
      const high = d - 2 * Math.max(0, d - n);
      if (d > MOST_EDITS) return farthest(ahead, [low, high], n, m);
      for (let k = low; k <= high; k += 2) {
        const down = k === -d || (k !== d && ahead[middle + k - 1] < ahead[middle + k + 1]);
        let x = down ? ahead[middle + k + 1] : ahead[middle + k - 1] + 1;
        while (x < n && x - k < m && a[a0 + x] === b[b0 + x - k]) x += 1;
        ahead[middle + k] = x;
        const back = delta - k;
        if (odd && back >= 1 - d && back <= d - 1 && x + behind[middle + back] >= n) return [x, x - k];
      }
      for (let k = low; k <= high; k += 2) {
        const down = k === -d || (k !== d && behind[middle + k - 1] < behind[middle + k + 1]);
        let x = down ? behind[middle + k + 1] : behind[middle + k - 1] + 1;
        while (x < n && x - k < m && a[a1 - 1 - x] === b[b1 - 1 - x + k]) x += 1;
        behind[middle + k] = x;
        const front = delta - k;
        if (!odd && front >= -d && front <= d && x + ahead[middle + front] >= n) return [n - x, m - x + k];
      }
    }
  };

  const farthest = (ahead, [low, high], n, m) => {
    const middle = ahead.length >> 1;
    let best = [0, 0];
    // The last full round is the one before, whose diagonals lie between these.
    for (let k = low + 1; k < high; k += 2) {
      const x = ahead[middle + k];
      if (x <= n && x - k <= m && 2 * x - k > best[0] + best[1]) best = [x, x - k];
    }
    return best[0] + best[1] ? best : [n, 0];
  };

  const numbered = (a, b) => {
    const known = new Map();
    const number = (key) => known.get(key) ?? (known.set(key, known.size), known.size - 1);
    return [Int32Array.from(a, number), Int32Array.from(b, number)];
  };

  // Which members of two sequences of strings are not part of what they share in order: two lists of 0 and 1.
  const compare = (left, right) => {
    const [a, b] = numbered(left, right);
    const onlyA = new Uint8Array(a.length);
    const onlyB = new Uint8Array(b.length);
    const size = 2 * (a.length + b.length) + 5;
    const [ahead, behind] = [new Int32Array(size), new Int32Array(size)];
    const open = [[0, a.length, 0, b.length]];
    while (open.length) {
      let [a0, a1, b0, b1] = open.pop();
      while (a0 < a1 && b0 < b1 && a[a0] === b[b0]) (a0 += 1), (b0 += 1);
      while (a0 < a1 && b0 < b1 && a[a1 - 1] === b[b1 - 1]) (a1 -= 1), (b1 -= 1);
      if (a0 === a1 || b0 === b1) {
        onlyA.fill(1, a0, a1);
        onlyB.fill(1, b0, b1);
        continue;
      }
      const [x, y] = meeting(a, b, [a0, a1, b0, b1], ahead, behind);
      open.push([a0, a0 + x, b0, b0 + y], [a0 + x, a1, b0 + y, b1]);
    }
    return [onlyA, onlyB];
  };

  // A text as [{text, only, query}]: runs of words that the other text lacks, and words of the query.
  const pieces = (text, found, only, query) => {
    const out = [];
    let at = 0;
    const add = (to, one) => {
      if (to <= at) return;
      const last = out.at(-1);
      if (last && last.only === one.only && last.query === one.query) last.text += text.slice(at, to);
      else out.push({ text: text.slice(at, to), ...one });
      at = to;
    };
    found.forEach((word, place) => {
      // What stands between two words that are both missing is marked with them, so that a phrase is one mark.
      add(word.from, { only: Boolean(place && only[place - 1] && only[place]), query: false });
      add(word.to, { only: Boolean(only[place]), query: query.has(word.key) });
    });
    add(text.length, { only: false, query: false });
    return out;
  };

  return { words, telling, compare, pieces };
})();
