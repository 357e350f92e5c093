"use strict";
// The explorer: what it holds, what is chosen, and the way between its three views.
(() => {
  const { el, fixed, fold, NONE } = window.ranktilt.elements;
  const { queries, lists, pairs } = window.ranktilt;
  const NEAR = "800px";

  const parsed = async (id) => {
    const packed = document.getElementById(id).textContent;
    return packed ? JSON.parse(await window.ranktilt.unpacked(packed)) : null;
  };

  // A letter for each group: the first of its name where they differ, else A, B, C.
  const letters = (names) => {
    const first = names.map((name) => (/[\p{L}\p{N}]/u.exec(name)?.[0] ?? "?").toUpperCase());
    return new Set(first).size === names.length ? first : names.map((_, place) => String.fromCharCode(65 + (place % 26)));
  };

  class Explorer {
    constructor(host) {
      this.host = host;
      this.state = { run: 0, measure: 0, pair: 0, beside: null, sort: "part", way: "other", page: 0, words: "",
        query: null, doc: null, twin: null };
      host.hidden = false;
      host.parentElement.classList.add("live");
      host.append(el("p", { class: "note" }, "Opening the queries …"));
    }

    // ---- what it holds --------------------------------------------------------------------------------------------
    open() {
      this.opened ??= this.load().catch((error) => this.fail(error));
      return this.opened;
    }

    async load() {
      if (!("DecompressionStream" in window)) throw new Error("this browser is too old (before 2023)");
      const data = await parsed(`${this.host.id}-lists`);
      this.state.measure = data.primary;
      this.places = new Map(data.queries.map((query, place) => [query.id, place]));
      this.folded = data.queries.map((query) => fold(`${query.text} ${query.id}`));
      this.order = data.queries.map((_, place) => place);
      this.letters = letters(data.groups);
      this.data = data;
      this.build();
      this.show();
    }

    fail(error) {
      this.host.parentElement.classList.remove("live");
      this.host.replaceChildren(el("p", { class: "note", role: "status" },
        `The queries could not be opened (${error.message}). Those that contribute most are in the table below.`));
    }

    // The documents' texts; empty where the page carries none.
    texts() {
      this.reading ??= parsed(`${this.host.id}-texts`).catch(() => null).then((texts) => texts ?? []);
      return this.reading;
    }

    text(texts, doc) {
      const found = texts[doc];
      if (found === undefined) return { text: "", missing: "This page does not include the text." };
      if (found === null) return { text: "", missing: "The collection does not contain this document." };
      return typeof found === "string" ? { text: found } : { text: found.text, of: found.of };
    }

    // ---- what is chosen, as the audit has it ----------------------------------------------------------------------
    get pair() { return (this.data.pairs[this.state.pair] ?? []).map((name) => this.data.groups.indexOf(name)); }
    get judged() { return this.data.queries.some(({ relevant }) => relevant > 0); }
    get paired() { return this.data.docs.twins.some((twins) => twins.length > 0); }
    get measure() { return this.data.measures[this.state.measure]; }
    get tilts() { return this.part(this.state.run); }
    get most() { return Math.max(0, ...this.tilts.map((value) => Math.abs(value ?? 0))); }
    get digits() { return this.most >= 10 ? 1 : this.most >= 1 ? 2 : 3; }
    part(run) { return this.data.tilt[run]?.[this.state.pair]?.[this.state.measure]; }
    values(column, run = this.state.run) { return this.data.values[run][this.state.measure][column]; }
    heads(query, run = this.state.run) { return this.data.heads[run]?.[this.state.pair]?.[query] ?? null; }

    tied(query, run = this.state.run) {
      const heads = this.heads(query, run);
      return heads ? `${heads[2]} of ${heads[0] + heads[1] + heads[2]}` : NONE;
    }

    // Of a query's pairs of twins: in how many the first stands higher, less in how many the second does.
    lead(query) {
      const heads = this.heads(query);
      return heads ? heads[0] - heads[1] : null;
    }

    led(query) {
      const heads = this.heads(query);
      return heads ? `${heads[0]} : ${heads[1]}` : NONE;
    }

    share(query, group, run = this.state.run) {
      const { docs, lists: all } = this.data;
      const top = all[run][query].entries.filter((entry) => entry[5]);
      return top.length ? top.filter(([doc]) => docs.group[doc] === group).length / top.length : null;
    }

    get hasTexts() { return Boolean(document.getElementById(`${this.host.id}-texts`).textContent); }

    groupOf(doc) {
      const place = this.data.docs.group[doc];
      if (!(place >= 0)) return null;
      const side = this.pair.indexOf(place);
      return { name: this.data.groups[place], letter: this.letters[place], tone: ["other", "first", "second"][side + 1] };
    }

    // Values are shown in %, as elsewhere on the page.
    shown(value) {
      return value === null || value === undefined ? NONE : fixed(100 * value, 1);
    }

    // ---- building and showing -------------------------------------------------------------------------------------
    build() {
      this.controls = el("div", { class: "controls" });
      this.body = el("div", {});
      this.host.replaceChildren(this.controls, this.body);
      this.host.addEventListener("keydown", (event) => this.key(event));
      const { runs, measures, pairs: compared } = this.data;
      this.choices = {
        run: this.choice("run", "Ranker", runs, 1),
        measure: this.choice("measure", "Measure", measures, 1),
        pair: this.choice("pair", "Compared", compared.map(([a, b]) => `${a} with ${b}`), 2),
      };
    }

    choice(name, title, options, fewest) {
      const select = el("select", { change: () => this.choose(name, Number(select.value)) },
        options.map((option, place) => el("option", { value: place }, option)));
      if (options.length >= fewest) this.controls.append(el("label", {}, el("span", {}, title), select));
      return select;
    }

    choose(name, value) {
      this.state[name] = value;
      if (this.state.query !== null) this.remember("replaceState", this.address());
      const kept = this.body.contains(document.activeElement) ? document.activeElement.dataset.keep : null;
      this.show();
      if (kept) this.body.querySelector(`[data-keep="${kept}"]`)?.focus();
    }

    show() {
      const { query, doc } = this.state;
      for (const [name, select] of Object.entries(this.choices)) select.value = this.state[name];
      (query === null ? queries : doc === null ? lists : pairs).show(this);
    }

    // ---- moving ---------------------------------------------------------------------------------------------------
    key(event) {
      if (event.key === "Escape" && this.state.query !== null) {
        event.preventDefault();
        this.back();
      }
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (!step || !event.target.matches(".open")) return;
      const all = [...this.body.querySelectorAll(".open")];
      event.preventDefault();
      all[all.indexOf(event.target) + step]?.focus();
    }

    go(state, focus) {
      Object.assign(this.state, state);
      // The page as it was is marked as ours, so that the browser's back button returns to the table.
      if (!history.state) this.remember("replaceState", location.hash);
      this.remember("pushState", this.address());
      this.show();
      this.focus(focus());
    }

    // Puts the focus on an element, or on the heading of the view, and brings it into sight.
    focus(element) {
      const target = element ?? this.body.querySelector("h3");
      target?.focus({ preventScroll: true });
      const { top, bottom } = (target ?? this.host).getBoundingClientRect();
      const hidden = document.querySelector("nav").getBoundingClientRect().bottom;
      if (element && (top < hidden || bottom > innerHeight)) element.scrollIntoView({ block: "center" });
      else if (!element && (top < hidden || bottom > innerHeight / 2)) this.host.scrollIntoView({ block: "start" });
    }

    back() {
      const { query, doc } = this.state;
      if (doc !== null) this.go({ doc: null, twin: null }, () => this.body.querySelector(`[data-doc="${doc}"]`));
      else this.go({ query: null }, () => this.body.querySelector(`[data-query="${query}"]`));
    }

    address() {
      const { query, doc, twin, run } = this.state;
      if (query === null) return `#${this.host.id}`;
      const parts = new URLSearchParams({ q: this.data.queries[query].id, r: this.data.runs[run] });
      if (doc !== null) parts.set("d", this.data.docs.id[doc]);
      if (twin !== null) parts.set("t", this.data.docs.id[twin]);
      return `#${this.host.id}?${parts}`;
    }

    remember(how, address) {
      try {
        history[how]({ explorer: this.host.id }, "", address || location.pathname);
      } catch {
        // A browser that keeps files from it: everything but its back button works.
      }
    }

    // Takes the reader to what the last part of an address names; to the table where that is empty.
    async follow(parts) {
      const before = this.data && this.chosen;
      await this.open();
      if (!this.data) return;
      const last = this.state.query;
      const named = new URLSearchParams(parts);
      const { runs, docs } = this.data;
      const known = (place) => (place >= 0 ? place : null);
      const query = this.places.get(named.get("q")) ?? null;
      const doc = query === null ? null : known(docs.id.indexOf(named.get("d")));
      const twin = doc === null ? null : known(docs.id.indexOf(named.get("t")));
      Object.assign(this.state, { query, doc, twin, run: known(runs.indexOf(named.get("r"))) ?? this.state.run });
      if (this.chosen === before) return; // the reader comes back to where it was left
      this.show();
      this.focus(query === null ? this.body.querySelector(`[data-query="${last}"]`) : null);
    }

    get chosen() {
      const { query, doc, twin, run } = this.state;
      return [query, doc, twin, run].join();
    }

    // Goes back to the table without taking the reader along.
    close() {
      if (!this.data || this.state.query === null) return;
      Object.assign(this.state, { query: null, doc: null, twin: null });
      this.show();
    }
  }

  const explorers = [...document.querySelectorAll(".explorer")].map((host) => new Explorer(host));
  const near = new IntersectionObserver((seen) => {
    for (const { target, isIntersecting } of seen) {
      if (!isIntersecting) continue;
      near.unobserve(target);
      explorers.find((one) => one.host === target).open();
    }
  }, { rootMargin: NEAR });
  for (const one of explorers) near.observe(one.host);

  const follow = (state) => {
    const [id, parts = ""] = location.hash.slice(1).split("?");
    for (const one of explorers) {
      if (id === one.host.id) one.follow(parts);
      else if (state?.explorer === one.host.id) one.follow("");
      else if (state) one.close(); // at that time another explorer was looked through
    }
  };
  addEventListener("popstate", (event) => follow(event.state));
  if (location.hash.includes("?")) follow(null);
})();
