// Messages: find one, its life, and what the operator may do with it.

import { h, nameOf } from './dom.js'
import { clock, count, moving, now, number, octets } from './words.js'
import { ask, order, say } from './orders.js'

const chosen = { to: '', from: '', label: '', state: '', id: '' }
let found = null, life = null, answer = '', failed = '', at = 0, busy = false, again = false
const precedences = ['override', 'flash', 'immediate', 'priority', 'routine', 'deferred']

async function json(path) {
  const got = await fetch(path)
  if (!got.ok) throw new Error((await got.text()).slice(0, 300))
  return got.json()
}

async function fetchAll(state) {
  if (busy) { again = true; return }
  busy = true
  at = now()
  const q = new URLSearchParams({ limit: 100 })
  for (const name of ['to', 'from', 'label', 'state']) if (chosen[name]) q.set(name, chosen[name])
  const id = location.hash.split('/')[1]
  try {
    found = await json(`/messages?${q}`)
    failed = ''
    life = id ? await json(`/messages/${id}`) : null
  } catch (e) { failed = e.message; if (id) life = null }
  busy = false
  if (again) { again = false; return fetchAll(state) }
  state.redraw()
}

export function open(state) { fetchAll(state) }
export function told(state) { if (now() - at > 900) fetchAll(state) }
export function second(state) { if (now() - at > 2900) fetchAll(state) }

export async function act(what, e, state) {
  if (what === 'find') {
    for (const [name, value] of new FormData(e)) chosen[name] = value.trim()
    const id = chosen.id
    chosen.id = ''
    answer = ''
    if (id) location.hash = `messages/${encodeURIComponent(id)}`
    else fetchAll(state)
    return
  }
  if (what === 'state') { chosen.state = e.value; fetchAll(state); return }
  if (!state.view.orders) return say('Orders are not taken here', 'Name a token file (http.token_file) in the configuration, or give the order on the gateway\'s machine.')
  const path = `/messages/${encodeURIComponent(life.id)}/${what}`
  let body = {}
  if (what === 'precedence') {
    const values = await ask('Another precedence', `For ${about(life)}.`, [['precedence', 'Precedence', h('select', {}, precedences.map(p => h('option', { value: p, selected: p === life.precedence }, p)))]], 'Change it')
    if (!values) return
    body = values
  } else if (what === 'cancel' && !await ask('Cancel the message', 'It is not sent any more, and nobody gets it who has not got it yet.', [], 'Cancel the message')) return
  const done = await order(path, body)
  if (!done) return
  answer = done.text
  fetchAll(state)
}

const word = text => String(text).replace(/_/g, ' ')
const sender = m => nameOf(m.from_name || m.from || '–')
const about = m => nameOf(m.label || m.pipe_name || m.id)

// fate is where a message stands, in a word: what all recipients agree in, or that of the one that is furthest back.
function fate(m) {
  const states = new Set((m.recipients || []).map(r => r.state))
  if (states.size === 1) return [...states][0]
  return m.held ? 'held' : m.state
}

const when = t => t && !t.startsWith('0001') ? t : null

function cell(label, ...kids) { return h('td', { 'data-label': label }, h('span', { class: 'cell' }, kids)) }

function row(m) {
  const expected = when(m.expected)
  return h('tr', { 'data-key': m.id, class: life?.id === m.id ? 'chosen' : '' },
    h('th', { scope: 'row' }, h('a', { href: `#messages/${encodeURIComponent(m.id)}` }, about(m)), about(m) === m.id ? null : h('span', { class: 'soft id' }, m.id)),
    cell('From', sender(m)), cell('To', (m.recipients || []).map(r => r.site).join(', ') || '–'),
    cell('Precedence', h('span', { class: `prec ${m.precedence}` }, m.precedence)),
    cell('Size', octets(m.octets), m.coded_octets ? h('span', { class: 'soft' }, ` as ${m.coded_octets} B`) : null),
    cell('Accepted', when(m.accepted) ? moving('ago', m.accepted) : '–'),
    cell('State', h('span', { class: `fate ${fate(m)}` }, word(fate(m)))),
    cell('There', m.state === 'ended' ? '–' : expected ? moving('in', expected) : h('span', { class: 'soft' }, 'nobody can tell')))
}

function detail(m) {
  const open = m.state !== 'ended'
  const behind = m.waits_behind
  return h('section', { class: 'card life' }, h('h2', {}, about(m)),
    h('dl', {}, [['Id', m.id], ['From', sender(m)], ['Sender', m.from_name ? m.from : ''], ['To', m.pipe_name || m.to_pipe], ['About', m.label], ['Precedence', m.precedence], ['Size', `${number(m.octets)} B${m.coded_octets ? `, ${number(m.coded_octets)} B coded` : ''}`],
      ['Expires', when(m.expires) && clock(m.expires)], ['Waits behind', open && behind?.messages ? `${count(behind.messages, 'message', 'messages')}, ${octets(behind.octets)}` : ''], ['Expected', open && when(m.expected) ? moving('in', m.expected) : '']]
      .filter(([, x]) => x).map(([what, x]) => [h('dt', {}, what), h('dd', { class: 'long' }, x)])),
    h('table', {}, h('caption', {}, 'Recipients'), h('tbody', {}, (m.recipients || []).map(r => h('tr', {}, h('th', { scope: 'row' }, r.site), h('td', { class: 'text' }, h('span', { class: `fate ${r.state}` }, word(r.state)), r.detail ? ` – ${r.detail}` : ''), h('td', {}, when(r.since) ? clock(r.since) : ''))))),
    h('h3', {}, 'Its life'),
    h('ol', { class: 'events' }, (m.life || []).map(e => h('li', {}, when(e.at) ? h('time', { datetime: e.at, title: e.at }, new Date(e.at).toTimeString().slice(0, 8)) : h('span', {}, '–'), h('span', {}, h('strong', {}, word(e.what)), e.site ? ` ${e.site}` : '', e.detail ? h('span', { class: 'soft' }, ` ${e.detail}`) : '')))),
    answer && h('p', { class: 'soft', role: 'status' }, answer),
    open ? h('p', { class: 'buttons' }, [m.held ? ['release', 'Release'] : ['hold', 'Hold'], ['precedence', 'Precedence…'], ['cancel', 'Cancel…']].map(([what, text]) => h('button', { type: 'button', 'data-do': what, 'data-on': 'click' }, text))) : null)
}

export function draw({ view: v }, [id]) {
  const field = (name, label, list) => h('label', {}, h('span', {}, label), h('input', { type: 'search', name, value: chosen[name], autocomplete: 'off', list }))
  const rows = found?.messages || []
  return [h('form', { class: 'choices', 'data-do': 'find', role: 'search', 'aria-label': 'Find messages' },
    field('to', 'To', 'sites'), h('datalist', { id: 'sites' }, v.sites.map(x => h('option', { value: x.name }))), field('from', 'From'), field('label', 'Label'), field('id', 'Id'),
    h('label', {}, h('span', {}, 'State'), h('select', { name: 'state', 'data-do': 'state', 'data-on': 'change' }, [['', 'any'], ['waiting', 'waiting'], ['under_way', 'under way'], ['ended', 'ended']].map(([value, text]) => h('option', { value, selected: value === chosen.state }, text)))),
    h('button', { type: 'submit', class: 'main' }, 'Find')),
  failed ? h('p', { class: 'empty', role: 'status' }, failed) : null,
  h('div', { class: 'split lists' },
    h('section', {}, h('h2', {}, found ? count(rows.length, 'message', 'messages') + (found.more ? ', and more' : '') : 'Messages'),
      rows.length ? h('div', { class: 'wide', tabindex: 0, role: 'region', 'aria-label': 'Messages' }, h('table', { class: 'cards' },
        h('thead', {}, h('tr', {}, ['Message', 'From', 'To', 'Precedence', 'Size', 'Accepted', 'State', 'There'].map(t => h('th', { scope: 'col' }, t)))), h('tbody', {}, rows.map(row))))
        : h('p', { class: 'empty' }, found ? 'None fits.' : failed ? '' : 'Asking for the messages')),
    id && life ? detail(life) : null)]
}
