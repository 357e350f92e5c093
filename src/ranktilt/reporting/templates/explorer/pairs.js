"use strict";
// Two texts of one document beside each other, with what only one of them says and the words of the query marked.
window.ranktilt.pairs = (() => {
  const { el, badge, button, counted } = window.ranktilt.elements;
  const { words, telling, compare, pieces } = window.ranktilt.differences;
  const { entries, place, score, grade } = window.ranktilt.lists;
  const COMPARED = 40_000; // characters, so that a page never stops for long
  const MORE = 100_000;
  const NAMED = 12;

  const marked = (text, found, only, query, name) =>
    pieces(text, found, only, query).map((piece) => {
      const inside = piece.query ? el("mark", {}, piece.text) : piece.text;
      return piece.only ? el(name, {}, inside) : inside;
    });

  const note = (...inside) => el("p", { class: "note" }, ...inside);

  // What is left of a long text, added a part at a time.
  const rest = (text, body) => {
    let at = COMPARED;
    const name = () => `Show more (${counted(text.length - at, "character")} left)`;
    const more = button(name(), () => {
      body.append(el("span", {}, text.slice(at, at + MORE)));
      at += MORE;
      if (at < text.length) more.textContent = name();
      else {
        body.setAttribute("tabindex", "-1");
        body.focus({ preventScroll: true });
        more.remove();
      }
    });
    return [note(`Only the first ${counted(COMPARED, "character")} are compared and marked.`), more];
  };

  // Both texts as elements, up to what is compared.
  const bodies = (texts, query) => {
    const first = texts.map(({ text }) => text.slice(0, COMPARED));
    const found = first.map(words);
    const keys = found.map((some) => some.map((word) => word.key));
    const only = texts.length === 2 && texts.every(({ missing }) => !missing) ? compare(...keys) : keys.map((some) => new Uint8Array(some.length));
    return texts.map(({ text, of, missing }, side) => {
      if (missing || !text.trim()) return [note(missing || "The document has no text.")];
      const body = el("div", { class: "text", dir: "auto" }, marked(first[side], found[side], only[side], query, side ? "ins" : "del"));
      const carried = of ? [...text].length : 0; // of a text that was cut: letters as Python counts them
      const cut = of > carried ? [note(`This page includes the first ${carried.toLocaleString("en")} of ${counted(of, "character")}.`)] : [];
      return [body, ...(text.length > COMPARED ? rest(text, body) : []), ...cut];
    });
  };

  const some = (query) => [...query].slice(0, NAMED).join(", ") + (query.size > NAMED ? ", …" : "");

  const legend = (names, query) =>
    note(
      names.length === 2 ? [el("del", {}, "dashed line"), ` only in ${names[0]} · `, el("ins", {}, "solid line"), ` only in ${names[1]} · `] : null,
      query.size ? [el("mark", {}, "bold"), ` a word of the query (${some(query)}). `] : null,
      names.length === 2 ? "Words are compared in order, ignoring case and punctuation." : null);

  const switches = (app, both) => {
    const one = (name, text) => {
      const box = el("input", { type: "checkbox", checked: !app.host.classList.contains(`no-${name}`),
        change: () => app.host.classList.toggle(`no-${name}`, !box.checked) });
      return el("label", { class: "switch" }, box, text);
    };
    return el("div", { class: "switches" }, both ? one("differences", "mark differences") : null, one("query", "mark query words"));
  };

  const side = (app, doc, by, body) => {
    const { docs, runs } = app.data;
    const entry = by.get(doc);
    const known = [`${runs[app.state.run]}: ${entry?.first ? `rank ${place(entry)}` : "not retrieved"}`];
    if (typeof entry?.score === "number") known.push(`score ${score(entry.score)}`);
    if (entry?.grade > 0) known.push(grade(entry.grade));
    const title = docs.title?.[doc];
    const source = docs.source?.[doc];
    return el("article", { "aria-label": `${app.groupOf(doc)?.name ?? "no group"}, ${docs.id[doc]}` },
      el("p", { class: "line" }, badge(app.groupOf(doc)), source ? el("span", { class: "note" }, el("bdi", {}, source)) : null,
        el("span", { class: "note" }, el("bdi", {}, docs.id[doc]))),
      note(known.join(" · ")),
      title ? el("h4", { dir: "auto" }, title) : null,
      body);
  };

  // The document and the twin it is compared with, in the order of their groups.
  const chosen = (app) => {
    const { doc, twin } = app.state;
    const { group, twins } = app.data.docs;
    const all = twins[doc] ?? [];
    const other = all.includes(twin) ? twin : all.find((one) => app.pair.includes(group[one])) ?? all[0];
    const both = other === undefined ? [doc] : [doc, other];
    return { all, other, both: both.sort((x, y) => group[x] - group[y]) };
  };

  const choice = (app, all, other) => {
    const { id } = app.data.docs;
    const box = el("select", { "data-keep": "twin",
      change: () => app.go({ twin: Number(box.value) }, () => app.body.querySelector("[data-keep=twin]")) },
      all.map((twin) => el("option", { value: twin, selected: twin === other }, `${app.groupOf(twin)?.name ?? "no group"} (${id[twin]})`)));
    return el("label", {}, el("span", {}, "Compared with"), box);
  };

  const show = async (app) => {
    const { docs, queries } = app.data;
    const query = queries[app.state.query];
    const { all, other, both } = chosen(app);
    const known = telling(query.text);
    const groups = both.map((doc) => app.groupOf(doc)?.name ?? "no group");
    const names = groups[0] === groups[1] ? both.map((doc) => docs.id[doc]) : groups;
    const view = el("div", { class: "texts" }, note("Opening the texts …"));
    app.body.replaceChildren(
      el("div", { class: "steps" }, button("‹ Ranked list", () => app.back(), { title: "Or press Escape" })),
      el("h3", { tabindex: "-1" }, both.length === 2 ? (app.hasTexts ? "Two texts of one document" : "Two versions of one document") : "A document without a twin"),
      note("Query: ", el("bdi", {}, query.text || query.id)),
      el("div", { class: "tools" }, all.length > 1 ? choice(app, all, other) : null, switches(app, both.length === 2)),
      legend(names, known),
      view);
    const texts = await app.texts();
    if (!view.isConnected) return;
    const found = bodies(both.map((doc) => app.text(texts, doc)), known);
    const by = entries(app, app.state.query, app.state.run).by;
    view.replaceChildren(...both.map((doc, n) => side(app, doc, by, found[n])));
  };

  return { show };
})();
