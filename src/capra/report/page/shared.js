"use strict";
// What block viewer and timeline share. Text from records is only ever set as text.

const DATA = JSON.parse(document.getElementById("data").textContent);

const byId = (id) => document.getElementById(id);

// A new element with attributes, then its children: elements or text.
function make(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

const commas = (number) => number.toString().replace(/\B(?=(\d{3})+(?!\d))/g, ",");
const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

// A description list of [name, value] pairs.
function facts(pairs) {
  const list = make("dl", { class: "facts" });
  for (const [name, value] of pairs) list.append(make("div", {}, make("dt", {}, name), make("dd", {}, value)));
  return list;
}

// Shows a section's viewer and fills its select; calls show(index) now and at every change.
function openViewer(section, select, items, show) {
  if (!items.length) return;
  byId(section).querySelector(".viewer").hidden = false;
  byId(section).querySelector(".empty").hidden = true;
  items.forEach((item, index) => select.append(make("option", { value: index }, item.title)));
  select.addEventListener("change", () => show(Number(select.value)));
  show(0);
}
