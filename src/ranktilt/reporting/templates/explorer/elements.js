"use strict";
// Elements from plain values. Every text becomes a text node: nothing in it is ever read as HTML.
window.ranktilt.elements = (() => {
  // As `visible` does in Python: what would act on a text without being seen is written out.
  const HIDDEN = /[\0-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|\p{Surrogate}/gu;
  const visible = (text) =>
    text.replace(/\r\n?/g, "\n").replace(HIDDEN, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`);

  const fold = (text) => text.normalize("NFKC").toLowerCase();

  // el("td", {class: "number"}, "text", element, …); a property that is a function listens, one that is null is left out.
  const el = (name, properties, ...children) => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(properties || {})) {
      if (value === null || value === undefined || value === false) continue;
      if (typeof value === "function") element.addEventListener(key, value);
      else element.setAttribute(key, value === true ? "" : visible(String(value)));
    }
    const some = children.flat(3).filter((child) => child !== null && child !== undefined && child !== "");
    element.append(...some.map((child) => (child instanceof Node ? child : visible(String(child)))));
    return element;
  };

  const NONE = "–";
  const fixed = (value, digits) => value.toFixed(digits).replace("-", "−");
  const signed = (value, digits) => {
    if (value === null || value === undefined) return NONE;
    return (value > 0 ? "+" : value < 0 ? "−" : "") + Math.abs(value).toFixed(digits);
  };
  const counted = (count, one, many = `${one}s`) => `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
  const tone = (value) => (value > 0 ? "first" : value < 0 ? "second" : "");
  const sign = (value) => (value > 0 ? "▲" : value < 0 ? "▼" : "");

  // A number with its sign, its colour and a bar to the right or left of zero.
  const tilt = (value, digits, most) => {
    const share = value && most ? Math.min(1, Math.abs(value) / most) * 50 : 0;
    const bar = el("span", { class: "bar", "aria-hidden": "true" }, el("i", {}));
    bar.firstChild.style.width = `${share}%`;
    bar.firstChild.style[value < 0 ? "right" : "left"] = "50%";
    const mark = sign(value) && el("span", { class: "sign", "aria-hidden": "true" }, sign(value));
    return el("span", { class: `tilt ${tone(value)}` }, el("span", { class: "amount" }, mark, " ", signed(value, digits)), bar);
  };

  // A source's letter, colour and name.
  const badge = (group) =>
    group
      ? el("span", { class: `badge ${group.tone}` }, el("span", { class: "letter", "aria-hidden": "true" }, group.letter),
          el("bdi", {}, group.name))
      : el("span", { class: "badge" }, "no group");

  const button = (text, act, properties) => el("button", { type: "button", click: act, ...properties }, text);

  return { el, fixed, fold, signed, counted, tilt, badge, button, NONE };
})();
