"use strict";
// One query in the explorer: what each ranker makes of it, and the ranked list of one or two of them.
window.ranktilt.lists = (() => {
  const { el, badge, button, counted, tilt, NONE } = window.ranktilt.elements;
  const FIRST_WORDS = 170;

  const place = (entry) => {
    if (!entry || entry.first === null) return "not retrieved";
    return entry.first === entry.last ? `${entry.first}` : `${entry.first}–${entry.last}`;
  };
  const score = (value) => (value === null || value === undefined ? NONE : String(Number(value.toPrecision(4))));
  const grade = (value) => (value === 1 ? "relevant" : `relevant, grade ${value}`);

  const entries = (app, query, run) => {
    const { found, more = 0, entries: all } = app.data.lists[run][query];
    const list = all.map(([doc, first, last, points, relevance, top]) =>
      ({ doc, first, last, score: points, grade: relevance, top: Boolean(top) }));
    return { found, more, list, by: new Map(list.map((entry) => [entry.doc, entry])) };
  };

  const twin = (app, entry, other, by) => {
    const found = by.get(other);
    const name = app.data.groups.length > 2 ? `${app.groupOf(other)?.name ?? "twin"} ` : "twin ";
    if (!found || found.first === null) return `${name}not retrieved`;
    if (entry.first === null) return `${name}at ${place(found)}`;
    if (found.first === entry.first) return `${name}tied with it`;
    return `${name}at ${place(found)}, ${found.first > entry.first ? "lower" : "higher"}`;
  };

  const row = (app, entry, by, { texts, run }) => {
    const { docs } = app.data;
    const text = [...(texts ? app.text(texts, entry.doc).text.slice(0, 4 * FIRST_WORDS).trim() : "")];
    const first = text.slice(0, FIRST_WORDS).join("");
    const start = text.length > FIRST_WORDS ? `${first.replace(/\s+\S*$/, "")} …` : first;
    const open = button(el("bdi", {}, docs.title?.[entry.doc] || docs.id[entry.doc]),
      () => app.go({ doc: entry.doc, twin: null, run }, () => null), { class: "open", "data-doc": entry.doc });
    const twins = docs.twins[entry.doc] ?? [];
    const source = docs.source?.[entry.doc];
    return el("tr", { role: "row" },
      el("td", { role: "cell", class: "rank", "data-title": "rank" }, entry.first === null ? NONE : place(entry)),
      el("th", { scope: "row", role: "rowheader", class: "doc" },
        el("span", { class: "line" }, badge(app.groupOf(entry.doc)),
          source ? el("span", { class: "note" }, el("bdi", {}, source)) : null,
          entry.grade > 0 ? el("span", { class: "grade" }, grade(entry.grade)) : null),
        open, start ? el("span", { class: "start", dir: "auto" }, start) : null),
      app.paired ? el("td", { role: "cell", class: "twins", "data-title": "twin" },
        twins.length ? twins.map((other) => el("span", {}, twin(app, entry, other, by))) : "no twin") : null,
      el("td", { role: "cell", class: "number", "data-title": "score" }, score(entry.score)));
  };

  const header = (titles) =>
    el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, titles.map(([title, number]) =>
      el("th", { scope: "col", role: "columnheader", class: number ? "number" : null }, title))));

  // One ranked list, and what fills it again once the texts are there.
  const ranked = (app, query, run) => {
    const { found, more, list, by } = entries(app, query, run);
    const titles = [["rank"], ["document"], ...(app.paired ? [["twin"]] : []), ["score", true]];
    const top = el("tbody", { role: "rowgroup" });
    const rest = el("tbody", { role: "rowgroup" });
    const further = [...(app.judged ? ["other relevant documents"] : []), ...(app.paired ? ["twins of those above"] : [])];
    const between = el("tr", { role: "row", class: "between" },
      el("th", { role: "cell", colspan: titles.length }, `Further down: ${further.join(", and ")}`));
    const fill = (texts) => {
      const kept = top.parentElement?.contains(document.activeElement) ? document.activeElement.dataset.doc : null;
      const lines = (wanted) => list.filter((entry) => entry.top === wanted).map((entry) => row(app, entry, by, { texts, run }));
      top.replaceChildren(...lines(true));
      const below = lines(false);
      rest.replaceChildren(...(below.length ? [between, ...below] : []));
      if (kept) top.parentElement.querySelector(`[data-doc="${kept}"]`)?.focus();
    };
    fill(null);
    const shown = list.filter((entry) => entry.top).length;
    const name = app.data.runs[run];
    const caption = !found ? `${name} returns nothing`
      : shown < found ? `What ${name} returns: the first ${shown} of ${counted(found, "document")}`
      : `What ${name} returns: ${counted(found, "document")}`;
    const table = el("table", { role: "table" }, el("caption", {}, caption), header(titles), top, rest);
    const note = more ? el("p", { class: "note" }, `${counted(more, "more relevant document")} further down or not retrieved.`) : null;
    const region = el("div", { class: "wide results", role: "region", tabindex: "0", "aria-label": caption }, table);
    return [el("div", {}, region, note), fill];
  };

  // What every ranker makes of the query; choosing one shows its list.
  const overview = (app, query) => {
    const { runs, groups } = app.data;
    const parts = runs.map((_, run) => app.part(run)?.[query]);
    const most = Math.max(...parts.map((value) => Math.abs(value ?? 0)));
    const [a, b] = app.pair;
    const sides = app.tilts ? [[groups[a], 1 + a], [groups[b], 1 + b]] : [];
    const means = app.measure === undefined ? [] : [...sides, ["all", 0]].map(([name, column]) => [`${name},\u00a0%`, column]);
    const titles = [["ranker"], ...(app.tilts ? [["points of Relative Δ", true]] : []), ...means.map(([title]) => [title, true]),
      ...(app.paired ? [["twins tied", true]] : [])];
    const cell = (title, ...inside) => el("td", { role: "cell", class: "number", "data-title": title }, ...inside);
    const body = el("tbody", { role: "rowgroup" }, runs.map((name, run) =>
      el("tr", { role: "row", class: run === app.state.run ? "chosen" : null },
        el("th", { scope: "row", role: "rowheader" }, button(el("bdi", {}, name), () => app.choose("run", run),
          { class: "run", "aria-pressed": String(run === app.state.run), "data-keep": `run-${run}` })),
        app.tilts ? el("td", { role: "cell", class: "number parts" }, tilt(parts[run], app.digits, most)) : null,
        means.map(([title, column]) => cell(title, app.shown(app.values(column, run)[query]))),
        app.paired ? cell("twins tied", app.tied(query, run)) : null)));
    const caption = app.measure === undefined ? "This query, each ranker" : `This query by ${app.measure}, each ranker`;
    return el("div", { class: "wide overview", role: "region", tabindex: "0", "aria-label": caption },
      el("table", { role: "table" }, el("caption", {}, caption), header(titles), body));
  };

  const steps = (app) => {
    const order = app.order;
    const at = order.indexOf(app.state.query);
    const step = (by, text, name) => {
      const query = order[at + by];
      const act = () => {
        if (query !== undefined) app.go({ query, doc: null, twin: null }, () => app.body.querySelector(`[data-keep="${name}"]`));
      };
      return button(text, act, { "aria-disabled": String(query === undefined), "aria-label": name, "data-keep": name });
    };
    return el("div", { class: "steps" }, button("‹ All queries", () => app.back(), { title: "Or press Escape" }), el("span", { class: "gap" }),
      step(-1, "‹ Previous", "Previous query"), step(1, "Next ›", "Next query"));
  };

  const heads = (app, query) => {
    const found = app.heads(query);
    if (!found) return "";
    const [a, b] = app.pair.map((one) => app.data.groups[one]);
    const [wins, losses, ties] = found;
    const twins = app.data.queries[query].relevant ? "relevant twins" : "twins";
    const pairs = counted(wins + losses + ties, `pair of ${twins}`, `pairs of ${twins}`);
    return `${pairs}: ${a} ranks higher in ${wins}, ${b} in ${losses}, tied ${ties}.`;
  };

  const beside = (app) => {
    const { runs } = app.data;
    if (runs.length < 2) return null;
    const box = el("select", { "data-keep": "beside", change: () => app.choose("beside", box.value === "" ? null : Number(box.value)) },
      el("option", { value: "" }, "nothing"),
      runs.map((name, run) => (run === app.state.run ? null : el("option", { value: run, selected: run === app.state.beside }, name))));
    return el("label", { class: "beside" }, el("span", {}, "Next to its list show"), box);
  };

  const show = async (app) => {
    const { query, run, beside: second } = app.state;
    const { id, text } = app.data.queries[query];
    const wanted = second === null || second === run ? [run] : [run, second];
    const found = wanted.map((one) => ranked(app, query, one));
    const view = el("div", { class: found.length > 1 ? "lists two" : "lists" }, found.map(([element]) => element));
    app.body.replaceChildren(
      steps(app),
      el("h3", { tabindex: "-1" }, el("bdi", {}, text || id)),
      el("p", { class: "note" }, "Query ", el("bdi", {}, id), ". ", heads(app, query)),
      overview(app, query),
      ...[beside(app)].filter(Boolean),
      view);
    const texts = await app.texts();
    if (texts && view.isConnected) found.forEach(([, fill]) => fill(texts));
  };

  return { show, entries, place, score, grade };
})();
