// Keeps the list of campaigns and a campaign's page up to date, and lets the arrow keys walk through the heat map.
"use strict";

const EVERY = 3000, LONGEST = 15000;
const body = document.body;
let tag = null, delay = EVERY, lost = false;

function say(words) {
  const line = document.getElementById("live");
  if (line && line.textContent !== words) line.textContent = words;
}

// Changes part of the page, and keeps what is open, where one has scrolled, and the focus.
function change(place, work) {
  const active = place.contains(document.activeElement) ? document.activeElement : null;
  const key = active && (active.id ? `#${CSS.escape(active.id)}`
    : active.getAttribute("href") ? `a[href="${CSS.escape(active.getAttribute("href"))}"]`
    : active.getAttribute("aria-label") ? `[aria-label="${CSS.escape(active.getAttribute("aria-label"))}"]` : null);
  const open = [...place.querySelectorAll("details")].map((each) => each.open);
  const left = [...place.querySelectorAll(".scroll")].map((each) => [each.scrollLeft, each.scrollTop]);
  work();
  place.querySelectorAll("details").forEach((each, i) => { each.open = Boolean(open[i]); });
  place.querySelectorAll(".scroll").forEach((each, i) => { if (left[i]) [each.scrollLeft, each.scrollTop] = left[i]; });
  const again = key && place.querySelector(key);
  if (again) again.focus({ preventScroll: true });
}

async function whole() {
  const answer = await fetch(location.href, { credentials: "same-origin" });
  if (!answer.ok || answer.redirected) throw new Error("no page");
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  const main = document.getElementById("main");
  change(main, () => main.replaceChildren(...fresh.getElementById("main").childNodes));
  body.dataset.look = fresh.body.dataset.look;
}

async function show(told) {
  const parts = document.querySelectorAll("[data-part]");
  if (told.look !== body.dataset.look) {
    if (!parts.length) return say("There are newer results: reload the page to see them.");
    await whole();
    return say(told.words);
  }
  for (const part of parts) {
    const html = told.parts[part.dataset.part];
    if (html !== undefined) change(part, () => { part.innerHTML = html; });
  }
}

async function look() {
  try {
    const headers = tag ? { "If-None-Match": tag } : {};
    const answer = await fetch(body.dataset.live, { headers, credentials: "same-origin", cache: "no-store" });
    if (answer.status === 401 || answer.redirected) return say("You are signed out: reload the page.");
    if (!answer.ok && answer.status !== 304) throw new Error(String(answer.status));
    if (lost) say("The server answers again.");
    if (answer.status === 200) {
      await show(await answer.json());
      tag = answer.headers.get("ETag");
    }
    lost = false;
    delay = EVERY;
  } catch {
    lost = true;
    delay = Math.min(LONGEST, delay * 1.5);
    say("The server does not answer; this page tries again by itself.");
  }
  setTimeout(next, delay);
}

function next() {
  if (document.hidden) document.addEventListener("visibilitychange", next, { once: true });
  else look();
}

function grid(table) {
  const words = document.getElementById("cell");
  const rows = [...table.tBodies[0].rows].map((row) => [...row.querySelectorAll("td[title]")]);
  const tell = (cell) => { words.textContent = cell.title; };
  table.setAttribute("role", "grid");
  rows.flat().forEach((cell) => { cell.tabIndex = -1; });
  if (rows[0] && rows[0][0]) rows[0][0].tabIndex = 0;
  table.addEventListener("mouseover", (event) => { if (event.target.title) tell(event.target); });
  table.addEventListener("focusin", (event) => {
    if (!event.target.title) return;
    rows.flat().forEach((cell) => { cell.tabIndex = cell === event.target ? 0 : -1; });
    tell(event.target);
  });
  table.addEventListener("keydown", (event) => {
    const r = rows.findIndex((row) => row.includes(event.target));
    if (r < 0) return;
    const c = rows[r].indexOf(event.target), last = rows[r].length - 1;
    const to = { ArrowUp: [r - 1, c], ArrowDown: [r + 1, c], ArrowLeft: [r, c - 1], ArrowRight: [r, c + 1],
      Home: [r, 0], End: [r, last] }[event.key];
    if (!to) return;
    event.preventDefault();
    const cell = rows[to[0]] && rows[to[0]][to[1]];
    if (cell) cell.focus();
  });
}

document.querySelectorAll("[data-grid]").forEach(grid);
if (body.dataset.live) setTimeout(next, EVERY);
