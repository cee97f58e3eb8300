// What if: the traffic of the last hours, or a trace, rehearsed on another link. The gateway plays it in a process of its own.

import { h } from './dom.js'
import { clock, moving, now, number, octets, span } from './words.js'
import { order, say } from './orders.js'

const chosen = { of: '60', link: '', deadline: '60' }
let links = null, last = null, at = 0, failed = '', trace = null, asked = false

async function json(path) {
  const got = await fetch(path)
  if (!got.ok) throw new Error((await got.text()).slice(0, 300))
  return got.json()
}

async function ask(state) {
  at = now()
  try {
    links ??= await json('/links')
    last = await json('/whatif')
    failed = ''
  } catch (e) { failed = e.message }
  state.redraw()
}

export function open(state) { ask(state) }
export function second(state) { if (now() - at > (last?.state === 'playing' ? 900 : 9000)) ask(state) }

export async function act(what, e, state) {
  if (what === 'choose') { chosen[e.name] = e.value; return }
  if (what === 'of') { chosen.of = e.value; state.redraw(); return }
  if (what === 'file') { trace = e.files[0] ?? null; state.redraw(); return }
  if (!state.view.orders) return say('Orders are not taken here', 'Name a token file (http.token_file) in the configuration, or run gateway rehearse on the gateway\'s machine.')
  if (what === 'stop') { await order('/whatif', { link: '', deadline_s: 1, stop: true }); return ask(state) }
  const values = new FormData(e)
  chosen.link = values.get('link')
  chosen.deadline = values.get('deadline')
  const body = { link: chosen.link, deadline_s: Number(chosen.deadline) }
  if (chosen.of === 'trace') {
    if (!trace) return say('Which trace?', 'Choose a file that gateway record or gateway synth has made.')
    if (trace.size > 1 << 20) return say('The trace is too long', 'The page takes 1 MiB. A longer one: gateway rehearse.')
    body.trace = await trace.text()
  } else body.minutes = Number(chosen.of)
  asked = true
  const answer = await order('/whatif', body)
  if (answer) { last = answer; at = now() }
  state.redraw()
}

const field = (key, label, input) => h('label', { 'data-key': key }, h('span', {}, label), input)

function form(state) {
  const own = state.view.profile
  const first = chosen.link || (links ?? []).find(l => l.name !== own)?.name
  const of = [['60', 'the last hour of this site'], ['360', 'the last 6 hours'], ['1440', 'the last day'], ['trace', 'a trace from a file']]
  return h('form', { 'data-do': 'play', class: 'choices', 'aria-label': 'Rehearse traffic' },
    field('of', 'Rehearse', h('select', { name: 'of', 'data-do': 'of', 'data-on': 'change' }, of.map(([v, text]) => h('option', { value: v, selected: v === chosen.of }, text)))),
    chosen.of === 'trace' && field('file', 'File', h('input', { type: 'file', name: 'file', 'data-do': 'file', 'data-on': 'change' })),
    field('link', 'On the link', h('select', { name: 'link', 'data-do': 'choose', 'data-on': 'change' }, (links ?? []).map(l => h('option', { value: l.name, selected: l.name === first }, l.name === own ? `${l.name} (this one)` : l.name)))),
    field('deadline', 'In time within, seconds', h('input', { type: 'number', name: 'deadline', 'data-do': 'choose', 'data-on': 'change', min: 1, max: 86400, value: chosen.deadline, required: true })),
    h('button', { type: 'submit', class: 'main', disabled: last?.state === 'playing' }, 'Rehearse'))
}

const time = s => s === null || s === undefined ? 'none' : s < 10 ? `${s.toFixed(1)} s` : span(s)
const minutes = m => m < 10 ? `${m.toFixed(1)} min` : `${Math.round(m)} min`
const known = (v, show) => v === null || v === undefined ? '–' : show(v)

function beside(w) {
  const t = w.today, f = w.then
  const rows = [
    ['Messages', t && number(t.messages), number(f.messages)],
    ['Arrived', t && number(t.arrived), `${number(f.arrived)} in time`],
    ['Latency, median', t && time(t.median_s), time(f.median_s)],
    ['Latency, slowest', t && time(t.slowest_s), time(f.slowest_s)],
    ['Octets on the link', t && octets(t.octets), octets(f.octets)],
    ['Minutes on the air', t && '–', known(f.air_minutes, minutes)],
    ['A call on demand', t && '–', known(f.call_minutes, minutes)],
    ['Iridium SBD credits', t && '–', known(f.credits, v => number(Math.round(v)))],
  ]
  return h('div', { class: 'wide', role: 'region', tabindex: 0, 'aria-label': 'Today and then' }, h('table', { class: 'beside' },
    h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, ''), t && h('th', { scope: 'col' }, 'today, here'), h('th', { scope: 'col' }, `on ${w.link}`))),
    h('tbody', {}, rows.map(([name, today, then]) => h('tr', {}, h('th', { scope: 'row' }, name), t && h('td', {}, today), h('td', {}, then))))))
}

const list = (title, lines) => lines?.length ? [h('h3', {}, title), h('ul', { class: 'notes' }, lines.map(l => h('li', {}, l)))] : null

function result(w) {
  if (w.state === 'none') return asked ? null : h('p', { class: 'empty' }, 'Nothing was rehearsed yet. It takes seconds to a minute, and the gateway goes on meanwhile.')
  if (w.state === 'playing') {
    return [h('p', { class: 'playing', role: 'status' }, `Rehearsing ${w.of} on ${w.link}, for `, moving('age', w.began)),
      h('button', { type: 'button', 'data-do': 'stop', 'data-on': 'click' }, 'Stop it')]
  }
  if (w.state === 'failed') return h('p', { class: 'verdict bad', role: 'status' }, `The rehearsal of ${w.of} on ${w.link} came to nothing: ${w.error}`)
  return [h('p', { class: `verdict ${w.verdict === 'GO' ? 'good' : 'bad'}`, role: 'status' }, w.line),
    h('p', { class: 'soft' }, `${w.of[0].toUpperCase()}${w.of.slice(1)}, rehearsed at ${clock(w.ended)}: three plays with other losses, the worst of each.`),
    beside(w), list('Why', w.why), list('What would help', w.helps), list('To know', w.notes)]
}

export function draw(state) {
  return [h('section', { 'aria-labelledby': 'whatif-title' }, h('h2', { id: 'whatif-title' }, 'What if'),
    h('p', { class: 'soft' }, 'What the same traffic would cost on another link, and whether it would be in time.'),
    failed && h('p', { class: 'verdict bad', role: 'alert' }, failed),
    !links && !failed ? h('p', { class: 'empty' }, 'Asking the gateway') : form(state)),
  last && h('section', { 'aria-label': 'Result' }, result(last))]
}
