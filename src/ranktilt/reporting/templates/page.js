"use strict";
(() => {
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const preferred = matchMedia("(prefers-color-scheme: dark)");
  const plots = [...document.querySelectorAll("[data-figure]")];
  let printing = false;

  const theme = () => (printing ? "light" : root.dataset.theme || (preferred.matches ? "dark" : "light"));

  // Figures name their colours as the style sheet does, so that each theme has one list of them.
  const coloured = (value, style) => {
    if (typeof value === "string") {
      const named = /^var\((--[a-z]+)\)$/.exec(value);
      return named ? style.getPropertyValue(named[1]).trim() : value;
    }
    if (Array.isArray(value)) return value.map((item) => coloured(item, style));
    if (value && typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, coloured(item, style)]));
    }
    return value;
  };

  // A name that would hide a mark or another name, or does not fit, is left to pointing at its mark.
  const uncover = (plot) => {
    const room = plot.getBoundingClientRect();
    const taken = [...plot.querySelectorAll(".mark-symbol.role-mark path, .role-axis-label text")].map((mark) => mark.getBoundingClientRect());
    for (const name of plot.querySelectorAll(".mark-text.role-mark text")) {
      const box = name.getBoundingClientRect();
      const hides = ({ left, right, top, bottom }) => left < box.right && box.left < right && top < box.bottom && box.top < bottom;
      const free = room.left <= box.left && box.right <= room.right && !taken.some(hides);
      name.style.visibility = free ? "" : "hidden";
      if (free) taken.push(box);
    }
  };

  const tip = document.body.appendChild(Object.assign(document.createElement("div"), { className: "tip", hidden: true }));
  const tooltip = (_, event, item, value) => {
    tip.hidden = !value;
    if (!value) return;
    tip.textContent = value;
    const { width, height } = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(4, Math.min(event.clientX + 12, innerWidth - width - 8))}px`;
    tip.style.top = `${event.clientY - height - 12 < 0 ? event.clientY + 16 : event.clientY - height - 12}px`;
  };

  const draw = async (plot) => {
    const style = getComputedStyle(root);
    const spec = coloured(JSON.parse(document.getElementById(plot.dataset.figure).textContent), style);
    const [ink, dim, line, shade] = ["--ink", "--dim", "--line", "--shade"].map((name) => style.getPropertyValue(name).trim());
    const size = (parseFloat(style.fontSize) || 16) * 0.82;
    const words = { labelColor: dim, titleColor: ink, labelFontSize: size, titleFontSize: size, titleFontWeight: "normal" };
    spec.config = {
      font: style.fontFamily, background: null, view: { stroke: null }, text: { fontSize: size, lineBreak: "\n" },
      axis: { ...words, gridColor: shade, domainColor: line, tickColor: line }, legend: { ...words, labelColor: ink, columns: plot.clientWidth < 480 ? 1 : 4 },
    };
    if (printing) spec.width = 600;
    plot.view?.finalize();
    const compiled = window.vegaLite.compile(spec).spec;
    const runtime = window.vega.parse(compiled, {}, { ast: true });
    plot.view = new window.vega.View(runtime, { renderer: "svg", expr: window.vega.expressionInterpreter, container: plot, hover: true, tooltip });
    plot.querySelector("form")?.remove(); // it would hold controls of parameters, and here are none
    plot.view.addResizeListener(() => uncover(plot));
    await plot.view.runAsync();
    uncover(plot);
  };

  // A figure in a fold has no width to be drawn in: it is drawn when it is unfolded.
  const unfolded = (plot) => !plot.closest("details:not([open])");

  const drawAll = async () => {
    if (!window.vegaLite) return;
    for (const plot of plots.filter(unfolded)) {
      await draw(plot);
      await new Promise((done) => setTimeout(done));
    }
    root.dataset.drawn = String(plots.filter(unfolded).length);
  };
  for (const fold of document.querySelectorAll("details")) {
    fold.addEventListener("toggle", () => {
      if (fold.open && fold.querySelector("[data-figure]")) drawAll();
    });
  }

  const label = () => {
    const dark = theme() === "dark";
    button.setAttribute("aria-pressed", String(dark));
    button.textContent = dark ? "Light" : "Dark";
    button.setAttribute("aria-label", dark ? "Use the light theme" : "Use the dark theme");
  };

  button.hidden = false;
  label();
  button.addEventListener("click", () => {
    root.dataset.theme = theme() === "dark" ? "light" : "dark";
    label();
    drawAll();
  });
  preferred.addEventListener("change", () => {
    label();
    drawAll();
  });
  const print = (on) => () => {
    const kept = root.dataset.kept;
    printing = on;
    if (on) {
      root.dataset.kept = root.dataset.theme || "";
      root.dataset.theme = "light";
    } else if (kept) root.dataset.theme = kept;
    else delete root.dataset.theme;
    if (window.vegaLite) plots.filter(unfolded).forEach(draw);
  };
  addEventListener("beforeprint", print(true));
  addEventListener("afterprint", print(false));

  // The navigation says where the reader is: the last section that begins in the upper part of the window.
  const nav = document.querySelector("nav");
  const links = [...nav.querySelectorAll("a:not([data-part])")];
  const sections = new Map(links.map((link) => [link, document.querySelector(link.hash)]));
  const lists = [...nav.querySelectorAll("[data-of]")];
  let waiting = false;
  const mark = (link, on) => {
    if (on === link.hasAttribute("aria-current")) return;
    if (!on) return link.removeAttribute("aria-current");
    link.setAttribute("aria-current", "true");
    const list = link.closest("ul");
    list.scrollTo({ left: link.offsetLeft - list.offsetLeft - list.clientWidth / 3 });
  };
  const here = () => {
    waiting = false;
    let [at, best] = [null, -Infinity];
    for (const [link, section] of sections) {
      const { top } = section.getBoundingClientRect();
      if (top < innerHeight / 3 && top > best) [at, best] = [link, top];
    }
    const of = at?.closest("ul").dataset.of;
    const shown = lists.find((list) => list.dataset.of === of) ?? lists.find((list) => !list.hidden);
    for (const list of lists) list.hidden = list !== shown;
    for (const link of links) mark(link, link === at);
    for (const link of nav.querySelectorAll("[data-part]")) mark(link, link.dataset.part === of);
    root.style.scrollPaddingTop = `${nav.offsetHeight + 16}px`;
  };
  nav.classList.add("sticks");
  here();
  addEventListener("scroll", () => {
    if (!waiting) requestAnimationFrame(here);
    waiting = true;
  }, { passive: true });

  // What a word means stands in a fold, which opens for whoever follows its link.
  for (const link of document.querySelectorAll("a.term")) {
    link.addEventListener("click", () => {
      document.getElementById("words").open = true;
    });
  }

  const undrawn = (why) => {
    const note = document.getElementById("undrawn");
    note.textContent = `The figures could not be drawn (${why}). Every number is in the tables and in the lines below the figures.`;
    note.hidden = false;
    plots.forEach((plot) => plot.remove());
  };

  const unpacked = async (text) => {
    const letters = atob(text);
    const bytes = new Uint8Array(letters.length);
    for (let place = 0; place < letters.length; place += 1) bytes[place] = letters.charCodeAt(place);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).text();
  };

  window.ranktilt = { unpacked };

  const start = async () => {
    const engine = document.getElementById("engine");
    if (!engine || !plots.length) return;
    if (!("DecompressionStream" in window)) return undrawn("this browser is older than 2023");
    const script = document.createElement("script");
    script.textContent = await unpacked(engine.textContent);
    document.body.append(script); // the page's policy knows this text by its hash
    if (!window.vegaLite) return undrawn("the drawing library did not start");
    await drawAll();
  };
  start().catch((error) => undrawn(error.message));
})();
