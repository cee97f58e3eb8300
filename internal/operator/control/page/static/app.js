// The page: which view is shown, what the gateway tells it, and the keys.

import { h, show } from './dom.js'
import { span, tick, setSkew, now as clockNow } from './words.js'
import * as now from './now.js'
import * as messages from './messages.js'
import * as air from './air.js'
import * as map from './map.js'
import * as whatif from './whatif.js'
import * as fleet from './fleet.js'

const views = { now, messages, air, map, whatif, fleet }
const byId = id => document.getElementById(id)

// state is what the views show. View is the last that the gateway has told; null before the first.
const state = { view: null, heard: 0, live: false, redraw }

const place = () => {
  const [name, ...rest] = location.hash.slice(1).split('/')
  return views[name] ? [name, rest.map(decodeURIComponent)] : ['now', []]
}

let shown = ''

function redraw() {
  const [name, rest] = place()
  if (name !== shown) {
    byId('main').replaceChildren()
    byId('main').dataset.view = name
    shown = name
    views[name].open?.(state)
  }
  for (const a of document.querySelectorAll('nav a')) {
    if (a.hash === `#${name}`) a.setAttribute('aria-current', 'page')
    else a.removeAttribute('aria-current')
  }
  const v = state.view
  if (!v) return
  byId('node').textContent = v.name
  byId('about').textContent = `node ${v.id}, ${v.profile}, this end is the ${v.end}`
  byId('version').textContent = `Aldis ${v.version}, up ${span((clockNow() - Date.parse(v.started)) / 1000)}`
  document.title = `${v.level === 'good' ? '' : v.level === 'bad' ? '! ' : '· '}${v.name} – Aldis`
  const verdict = byId('verdict')
  verdict.className = `verdict ${state.live ? v.level : 'lost'}`
  const words = state.live ? v.words : 'The gateway does not answer: what is shown is old'
  if (verdict.textContent !== words) verdict.textContent = words
  show(byId('main'), views[name].draw(state, rest))
}

function alive(yes) {
  state.live = yes
  byId('live').className = `live ${yes ? 'on' : 'off'}`
  byId('live').querySelector('.text').textContent = yes ? 'live' : 'not connected'
}

function listen() {
  const events = new EventSource('/events')
  events.onmessage = e => {
    state.view = JSON.parse(e.data)
    alive(true)
    views[place()[0]].told?.(state)
    redraw()
  }
  events.onopen = () => { alive(true); redraw() }
  events.onerror = () => {
    alive(false)
    if (!state.view) show(byId('main'), h('p', { class: 'empty', role: 'status' }, 'The gateway does not answer. The page asks again every few seconds.'))
    redraw()
    if (events.readyState === EventSource.CLOSED) setTimeout(listen, 5000)
  }
}

// The gateway's clock counts: a browser's may be wrong.
async function compareClocks() {
  const before = Date.now()
  const answer = await fetch('/page/icon.svg', { method: 'HEAD', cache: 'no-store' }).catch(() => null)
  const said = Date.parse(answer?.headers.get('Date') ?? '')
  const off = said + 500 - (before + Date.now()) / 2
  if (Math.abs(off) > 3000) setSkew(off)
}

const root = document.documentElement
const isDark = () => root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches
function nameTheme() { byId('theme').textContent = isDark() ? 'Light' : 'Dark' }
function turnTheme() {
  root.dataset.theme = isDark() ? 'light' : 'dark'
  try { localStorage.setItem('aldis-theme', root.dataset.theme) } catch { /* it holds for this page */ }
  nameTheme()
}
byId('theme').addEventListener('click', turnTheme)
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', nameTheme)
nameTheme()

document.addEventListener('keydown', e => {
  if (e.ctrlKey || e.altKey || e.metaKey || byId('dialog').open || e.target.closest('input,select,textarea')) return
  const knob = e.target.closest('[role=button][data-do]')
  if (knob && (e.key === 'Enter' || e.key === ' ')) {
    e.preventDefault()
    views[place()[0]].act(knob.dataset.do, knob, state)
    return
  }
  const name = Object.keys(views)[Number(e.key) - 1]
  if (name) {
    location.hash = name
    byId('main').focus({ preventScroll: true })
  } else if (e.key === 't') turnTheme()
  else views[place()[0]].key?.(e, state)
})

// What elements do stands in their data-do; the view that is shown obeys.
for (const kind of ['click', 'change', 'submit', 'input']) {
  document.addEventListener(kind, e => {
    const at = e.target.closest(kind === 'submit' ? 'form[data-do]' : `[data-do][data-on="${kind}"]`)
    if (!at || byId('dialog').contains(at)) return
    if (kind === 'submit') e.preventDefault()
    views[place()[0]].act(at.dataset.do, at, state)
  })
}

addEventListener('hashchange', () => { views[place()[0]].told?.(state); redraw(); scrollTo(0, 0) })
setInterval(() => { if (!document.hidden) { tick(document); views[place()[0]].second?.(state) } }, 1000)
show(byId('main'), h('p', { class: 'empty' }, 'Asking the gateway'))
compareClocks()
listen()
