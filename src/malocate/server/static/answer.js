// Sends answers without leaving the page. An answer is kept here until the server has it: after a
// dropped connection, or when the page is opened again, it is sent again; the server counts it once.
"use strict";

const body = document.body;
const kept = `malocate:${body.dataset.answer}:${body.dataset.who}`;
const LONGEST = 15000, WAIT = 5000, DOUBLE_TAP = 400;
let delay = 1000, timer = 0, sending = false;

const pending = () => { try { return localStorage.getItem(kept); } catch { return memory; } };
let memory = null;
function keep(text) {
  memory = text;
  try {
    if (text === null) localStorage.removeItem(kept);
    else localStorage.setItem(kept, text);
  } catch { /* private windows: it is kept until the page is closed */ }
}

function note(words, waiting = false) {
  const line = document.getElementById("note");
  line.textContent = words;
  line.classList.toggle("waiting", waiting);
}

const busy = (yes) => document.querySelectorAll("main button").forEach((each) => { each.disabled = yes; });

function show(text, address) {
  const fresh = new DOMParser().parseFromString(text, "text/html");
  document.getElementById("main").replaceChildren(...fresh.getElementById("main").childNodes);
  const tidy = new URL(address, location.href);
  tidy.searchParams.delete("note");
  history.replaceState(null, "", tidy);
  const title = document.querySelector("main h1");
  if (title) title.focus({ preventScroll: true });
  busy(true); // the second half of a double tap must not answer the next question
  setTimeout(() => { if (!sending) busy(false); }, DOUBLE_TAP);
  waitForMore();
}

function later() {
  busy(true);
  note(body.dataset.offline, true);
  clearTimeout(timer);
  timer = setTimeout(send, delay);
  delay = Math.min(LONGEST, delay * 2);
}

function refused(answer, text) {
  const said = new DOMParser().parseFromString(text, "text/html").getElementById("problem");
  busy(false);
  if (answer.status === 401) return note(body.dataset.signedOut, true);
  keep(null);
  note(said ? said.textContent : body.dataset.failed, true);
}

async function send() {
  const text = pending();
  if (text === null || sending) return;
  sending = true;
  busy(true);
  try {
    const answer = await fetch(body.dataset.answer, {
      method: "POST", body: new URLSearchParams(text), credentials: "same-origin",
    });
    const said = await answer.text();
    if (answer.status >= 500 || answer.status === 429 || answer.status === 408) throw new Error(String(answer.status));
    delay = 1000;
    if (answer.ok) {
      keep(null);
      show(said, answer.url);
    } else refused(answer, said);
  } catch {
    later();
  } finally {
    sending = false;
  }
}

function waitForMore() {
  clearTimeout(timer);
  if (document.querySelector("[data-wait]")) timer = setTimeout(more, WAIT);
}

async function more() {
  try {
    const answer = await fetch(location.href, { credentials: "same-origin" });
    const text = await answer.text();
    if (answer.ok && (text.includes("data-form") || !text.includes("data-wait"))) return show(text, answer.url);
  } catch { /* it is tried again */ }
  waitForMore();
}

document.addEventListener("submit", (event) => {
  if (!event.target.matches("[data-form]")) return;
  event.preventDefault();
  const form = new URLSearchParams(new FormData(event.target));
  if (event.submitter && event.submitter.name) form.set(event.submitter.name, event.submitter.value);
  keep(form.toString());
  send();
});
window.addEventListener("online", send);
if (pending() !== null) send();
else waitForMore();
