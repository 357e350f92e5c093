"use strict";
// The explorer's table of queries: searched, sorted, a page at a time.
window.ranktilt.queries = (() => {
  const { el, button, counted, fold, signed, tilt } = window.ranktilt.elements;
  const PAGE = 25;

  // What each column is called, what it sorts by, and what it shows. Only columns that the audit can fill are there.
  const columns = (app) => {
    const { data, measure, tilts } = app;
    const [digits, most] = tilts ? [app.digits, app.most] : [];
    const text = {
      key: "text", title: "query", hint: "Sorts by the query's words.", words: true,
      of: (query) => app.folded[query],
    };
    const part = {
      key: "part", title: "points of Relative Δ", sized: true,
      hint: "How much of the ranker's Relative Δ comes from this query. Over all queries, the column adds up to it.",
      of: (query) => tilts[query],
      shown: (query) => tilt(tilts[query], digits, most),
    };
    const mean = (key, column, name, whose) => ({
      key, title: `${name},\u00a0%`, hint: `${measure} of ${whose}.`,
      of: (query) => app.values(column)[query],
      shown: (query) => app.shown(app.values(column)[query]),
    });
    const ties = {
      key: "ties", title: "twins tied", hint: "How many of its pairs of twins with a side retrieved have equal scores (of relevant pairs, if there are judgments).",
      of: (query) => app.heads(query)?.[2] ?? null,
      shown: (query) => app.tied(query),
    };
    const relevant = {
      key: "relevant", title: "relevant", hint: "How many documents are judged relevant to it.",
      of: (query) => data.queries[query].relevant,
      shown: (query) => data.queries[query].relevant,
    };
    const [a, b] = app.pair;
    const sides = tilts ? [part, ...[a, b].map((side) => mean(`side${side}`, 1 + side, data.groups[side],
      `the ${data.groups[side]} documents`))] : [];
    // Where nothing is judged a query's number is how often each twin stands higher, or else the first group's share.
    const higher = {
      key: "higher", title: `${data.groups[a]} : ${data.groups[b]}`,
      hint: `In how many pairs of twins ${data.groups[a]} ranks higher, and in how many ${data.groups[b]}.`,
      of: (query) => app.lead(query),
      shown: (query) => app.led(query),
    };
    const share = {
      key: "share", title: `${data.groups[a]} in the first ${data.depth},\u00a0%`,
      hint: `Share of ${data.groups[a]} documents in the list's first ${data.depth}.`,
      of: (query) => app.share(query, a),
      shown: (query) => app.shown(app.share(query, a)),
    };
    const unjudged = tilts || a === undefined ? [] : [app.paired ? higher : share];
    const all = measure === undefined ? [] : [mean("all", 0, "all", "all documents")];
    return [text, ...unjudged, ...sides, ...all, ...(app.paired ? [ties] : []), ...(app.judged ? [relevant] : [])];
  };

  // Places of the queries that hold every word, in order; what is undefined stands last both ways.
  const ordered = (app) => {
    const { sort, way, words } = app.state;
    const wanted = fold(words).split(/\s+/).filter(Boolean);
    const found = app.folded.flatMap((text, place) => (wanted.every((word) => text.includes(word)) ? [place] : []));
    const column = columns(app).find((one) => one.key === sort);
    if (!column) return found;
    const value = (query) => {
      const known = column.of(query);
      return way === "other" && known !== null ? Math.abs(known) : known;
    };
    const keys = new Map(found.map((query) => [query, value(query)]));
    const turn = way === "ascending" ? 1 : -1;
    const compared = (x, y) => turn * (typeof x === "string" ? x.localeCompare(y) : x - y);
    return found.sort((p, q) => {
      const [x, y] = [keys.get(p), keys.get(q)];
      if (x === null || y === null) return (x === null) - (y === null) || p - q;
      return compared(x, y) || p - q;
    });
  };

  // A signed column goes round three ways: the largest of either sign first ("other"), the most positive, the most negative.
  const turned = ({ sort, way }, column) => {
    const ways = column.sized ? ["other", "descending", "ascending"] : column.words ? ["ascending", "descending"] : ["descending", "ascending"];
    const next = sort === column.key ? (ways.indexOf(way) + 1) % ways.length : 0;
    return { sort: column.key, way: ways[next], page: 0 };
  };

  const MARKS = { other: "±", descending: "↓", ascending: "↑" };

  const head = (app, column, again) => {
    const { sort, way } = app.state;
    const mine = sort === column.key;
    return el("th", { scope: "col", role: "columnheader", class: column.words ? null : "number", "aria-sort": mine ? way : null },
      button([column.title, el("span", { class: "mark", "aria-hidden": "true" }, mine ? MARKS[way] : "")],
        () => again(turned(app.state, column)), { class: "sort", title: column.hint, "data-keep": `sort-${column.key}` }));
  };

  const row = (app, query, all) => {
    const { id, text } = app.data.queries[query];
    const open = button(el("bdi", {}, text || id), () => app.go({ query, doc: null, twin: null }, () => null),
      { class: "open", "data-query": query });
    return el("tr", { role: "row" },
      el("th", { scope: "row", role: "rowheader" }, open, text ? el("small", {}, el("bdi", {}, id)) : null),
      all.slice(1).map((column) => el("td", { role: "cell", class: column.sized ? "number parts" : "number", "data-title": column.title,
        "data-value": column.of(query) }, column.shown(query))));
  };

  // Without twins 0 is not level, so a sign says who stands higher and not who is favoured.
  const side = (app, tone, sign, word, name) =>
    el("span", { class: tone }, el("span", { class: "sign", "aria-hidden": "true" }, sign), ` ${word} `, app.paired ? "favours " : null,
      el("bdi", {}, name), app.paired ? null : " higher");

  const summary = (app) => {
    if (!app.tilts) return null;
    const [a, b] = app.pair.map((place) => app.data.groups[place]);
    const { shown, of, runs } = app.data;
    const points = app.tilts.filter((value) => value !== null);
    const sum = points.reduce((total, value) => total + value, 0);
    const total = signed(sum, Math.abs(sum) >= 1 ? 1 : 2);
    const name = runs[app.state.run];
    const what = !points.length ? `Relative Δ of ${name} by ${app.measure} is undefined.`
      : shown === of
      ? `Relative Δ of ${name} by ${app.measure}: ${total} %, from these ${counted(points.length, "query", "queries")}.`
      : `These ${counted(shown, "query", "queries")} contribute ${total} points to the Relative Δ of ${name} by ${app.measure}.`;
    return el("p", { class: "note key" }, el("span", {}, what), side(app, "first", "▲", "+", a), side(app, "second", "▼", "−", b));
  };

  const pager = (app, again) => {
    const turn = (step) => () => again({ page: app.state.page + step }, true);
    const before = button("‹ Previous", turn(-1), { "aria-label": "Previous queries" });
    const after = button("Next ›", turn(1), { "aria-label": "Next queries" });
    const set = (page, pages) => {
      before.setAttribute("aria-disabled", String(page === 0));
      after.setAttribute("aria-disabled", String(page === pages - 1));
    };
    return [el("div", { class: "pager" }, before, after), set];
  };

  const show = (app) => {
    const caption = app.host.dataset.caption;
    const search = el("input", { type: "search", value: app.state.words, placeholder: "words or an id", autocomplete: "off", spellcheck: "false" });
    const status = el("p", { class: "note found", role: "status", "aria-live": "polite" });
    const header = el("tr", { role: "row" });
    const body = el("tbody", { role: "rowgroup" });
    const fill = () => {
      const all = columns(app);
      app.order = ordered(app);
      const pages = Math.max(1, Math.ceil(app.order.length / PAGE));
      app.state.page = Math.min(Math.max(app.state.page, 0), pages - 1);
      const from = app.state.page * PAGE;
      const some = app.order.slice(from, from + PAGE);
      body.replaceChildren(...some.map((query) => row(app, query, all)));
      const words = app.state.words.trim();
      status.textContent = (some.length ? `${from + 1}–${from + some.length} of ` : "") +
        counted(app.order.length, "query", "queries") + (words ? ` with “${words}”` : "");
      ends(app.state.page, pages);
    };
    const heads = () => {
      const kept = header.contains(document.activeElement) ? document.activeElement.dataset.keep : null;
      header.replaceChildren(...columns(app).map((column) => head(app, column, again)));
      if (kept) header.querySelector(`[data-keep="${kept}"]`).focus();
    };
    const again = (change, top = false) => {
      Object.assign(app.state, change);
      if ("sort" in change) heads();
      fill();
      const held = document.activeElement;
      if (top && held.matches(":focus-visible")) held.scrollIntoView({ block: "nearest" }); // keys: the focus stays in view
      else if (top && table.getBoundingClientRect().top < 0) table.scrollIntoView({ block: "start" });
    };
    search.addEventListener("input", () => again({ words: search.value, page: 0 }));
    const [pages, ends] = pager(app, again);
    const table = el("table", { role: "table" }, el("caption", {}, caption), el("thead", { role: "rowgroup" }, header), body);
    heads();
    fill();
    app.body.replaceChildren(
      el("div", { class: "search" }, el("label", {}, el("span", {}, "Search the queries"), search), status),
      ...[summary(app)].filter(Boolean),
      el("div", { class: "wide queries", role: "region", tabindex: "0", "aria-label": caption }, table),
      pages);
  };

  return { show };
})();
