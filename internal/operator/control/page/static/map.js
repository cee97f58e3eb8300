// Map: this gateway, its local peers, the sites and what is known where.

import { h, s, nameOf } from './dom.js'
import { bps, count, now, octets, span } from './words.js'

const most = 300 // advertisements that are asked for

let adverts = null, total = 0, failed = '', at = 0, asked = ''
const chosen = { site: '', type: '', text: '', id: '' }

async function fetchAdverts(state) {
  const v = state.view
  if (!v) return
  const want = JSON.stringify([v.items, v.sites.map(x => [x.items_held, x.far_items, x.state])])
  if ((want === asked || now() - at < 5000) && now() - at < 60000) return
  asked = want
  at = now()
  try {
    const answer = await fetch(`/adverts?limit=${most}`)
    if (!answer.ok) throw new Error((await answer.text()).slice(0, 200))
    total = Number(answer.headers.get('Aldis-Adverts'))
    const lines = (await answer.text()).split('\n').filter(Boolean).map(line => JSON.parse(line))
    failed = lines.filter(l => l.error && l.error !== 'limit').map(l => l.error).join(' ')
    adverts = lines.filter(l => !l.error)
  } catch (e) { failed = e.message; asked = '' }
  state.redraw()
}

export function open(state) { fetchAdverts(state) }
export function told(state) { fetchAdverts(state) }
export function second(state) { fetchAdverts(state) }

export function act(what, e, state) {
  if (what === 'site') chosen.site = chosen.site === e.dataset.name ? '' : e.dataset.name
  else if (what === 'service') chosen.id = chosen.id === e.dataset.id ? '' : e.dataset.id
  else chosen[what] = e.value
  state.redraw()
}

export function key(e, state) {
  if (e.key === 'Escape') { chosen.id = chosen.site = ''; state.redraw() }
}

const name = a => nameOf(a.name || a.id)
const keyOf = a => `${a.origin} ${a.group} ${a.type} ${a.id}`

// places are where the sites stand: around this gateway, on one or two rings.
function places(n) {
  const ring = n <= 12 ? [n] : [Math.ceil(n * 0.4), n - Math.ceil(n * 0.4)]
  const list = []
  ring.forEach((m, r) => {
    const rx = r === ring.length - 1 ? 330 : 200, ry = r === ring.length - 1 ? 185 : 105
    for (let i = 0; i < m; i++) {
      const a = -Math.PI / 2 + 2 * Math.PI * (i + (r ? 0.5 : 0)) / m + (n === 1 ? Math.PI / 2 : n === 2 ? Math.PI / 2 : 0)
      list.push([450 + rx * Math.cos(a), 240 + ry * Math.sin(a)])
    }
  })
  return list
}

const short = (text, n) => [...text].length > n ? `${[...text].slice(0, n - 1).join('')}…` : text

function picture(v, picked) {
  const spots = places(v.sites.length), many = v.sites.length > 12
  const where = Object.fromEntries((picked?.sites ?? []).map(t => [t.site, t.state]))
  const links = v.sites.map((site, i) => {
    const [x, y] = spots[i]
    const use = Math.max(site.out.percent, site.in.percent, 0)
    return s('line', { class: `link ${site.state}`, x1: 450, y1: 240, x2: x, y2: y, 'stroke-width': (many ? 1 : 2) + use / 25 })
  })
  const nodes = v.sites.map((site, i) => {
    const [x, y] = spots[i]
    const known = where[site.name]
    const r = many ? 9 : 18
    const words = `${site.name}: ${site.state}, sends ${bps(site.out.bps)}, receives ${bps(site.in.bps)}, ${count(site.waiting + site.under_way, 'message waits', 'messages wait')}${known ? `; ${known}` : ''}`
    return s('g', { class: 'spot', transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})`, 'data-key': `n${site.id}` }, s('g', { class: `node ${site.state}${chosen.site === site.name ? ' chosen' : ''}${known ? ` ${known.replace(' ', '-')}` : ''}`, role: 'button', tabindex: 0, 'data-do': 'site', 'data-on': 'click', 'data-name': site.name, 'aria-pressed': String(chosen.site === site.name), 'aria-label': words },
      s('title', {}, words),
      s('circle', { class: 'hit', r: r + 8 }), s('circle', { class: 'disc', r })),
      site.waiting + site.under_way && !many ? s('text', { class: 'inside', 'aria-hidden': 'true', y: 4, 'text-anchor': 'middle' }, site.waiting + site.under_way) : null,
      s('text', { 'aria-hidden': 'true', y: r + 15, 'text-anchor': 'middle' }, short(site.name, many ? 8 : 18)))
  })
  const near = v.locals.slice(0, 8).map((l, i, all) => {
    const a = Math.PI / 2 + (i - (all.length - 1) / 2) * 0.5
    return s('g', { class: 'local', transform: `translate(${(450 + 62 * Math.cos(a)).toFixed(1)} ${(240 + 62 * Math.sin(a)).toFixed(1)})`, 'data-key': l.id }, s('title', {}, l.name), s('circle', { r: 7 }))
  })
  return s('svg', { class: 'map', viewBox: '0 0 900 480', role: 'group', 'aria-label': `${v.name} and ${count(v.sites.length, 'site', 'sites')}` },
    links, near, s('g', { class: 'self', transform: 'translate(450 240)' }, s('circle', { r: 34 }), s('text', { y: 5, 'text-anchor': 'middle' }, short(v.name, 9))), nodes)
}

function detail(a) {
  return h('section', { class: 'card detail', 'aria-live': 'polite' }, h('h2', {}, name(a)),
    h('dl', {}, [['Type', a.type], ['From', a.origin === 'local' ? 'this site' : a.origin], ['Group', a.group], ['Size', octets(a.octets)], ['Lasts', span(a.lifetime_s)], ['Signed', a.signed ? 'yes' : 'no'], ['Peer', a.peer], ['Id', a.id]].filter(([, x]) => x).map(([what, x]) => [h('dt', {}, what), h('dd', { class: what === 'Id' || what === 'Peer' ? 'long' : '' }, x)])),
    a.origin === 'local'
      ? h('table', {}, h('caption', {}, 'Where it is known'), h('thead', {}, h('tr', {}, ['Site', 'State', 'Why'].map(t => h('th', { scope: 'col' }, t)))),
        h('tbody', {}, a.sites.map(t => h('tr', {}, h('th', { scope: 'row' }, t.site), h('td', {}, h('span', { class: `place ${t.state.replace(' ', '-')}` }, t.state)), h('td', { class: 'text' }, t.why || '')))))
      : h('p', { class: 'soft' }, `It came from ${a.origin}: what other sites have of it is not known here.`))
}

function services(v) {
  if (!adverts) return h('p', { class: 'empty' }, failed || 'Asking for the services')
  const types = [...new Set(adverts.map(a => a.type))].sort()
  const text = chosen.text.toLowerCase()
  const list = adverts.filter(a => (!chosen.type || a.type === chosen.type) && (!text || name(a).toLowerCase().includes(text)) &&
    (!chosen.site || a.origin === chosen.site || a.sites.some(t => t.site === chosen.site && t.state === 'held')))
  const shown = list.slice(0, 100)
  return [h('form', { class: 'choices', 'data-do': 'none' },
    h('label', {}, h('span', {}, 'Name'), h('input', { type: 'search', value: chosen.text, 'data-do': 'text', 'data-on': 'input' })),
    h('label', {}, h('span', {}, 'Type'), h('select', { 'data-do': 'type', 'data-on': 'change' }, h('option', { value: '' }, 'all'), types.map(t => h('option', { value: t, selected: t === chosen.type }, t))))),
  failed ? h('p', { class: 'soft' }, failed) : null,
  h('ul', { class: 'services' }, shown.map(a => h('li', { 'data-key': keyOf(a) }, h('button', { type: 'button', 'data-do': 'service', 'data-on': 'click', 'data-id': keyOf(a), 'aria-pressed': String(chosen.id === keyOf(a)) },
    h('span', { class: 'name' }, name(a)), h('span', { class: 'soft' }, a.type),
    h('span', { class: 'soft' }, a.origin === 'local' ? (a.sites.length ? `known at ${a.sites.filter(t => t.state === 'held').length} of ${a.sites.length}` : 'here') : `from ${a.origin}`))))),
  h('p', { class: 'soft' }, list.length > shown.length ? `${shown.length} of ${list.length} are shown. ` : list.length ? '' : 'None fits. ', total > adverts.length ? `The gateway has ${total}; the first ${adverts.length} are here.` : '')]
}

export function draw({ view: v }) {
  const picked = adverts?.find(a => keyOf(a) === chosen.id)
  return [h('section', {}, h('h2', {}, 'Sites'),
    h('div', { class: 'wide', tabindex: 0, role: 'region', 'aria-label': 'Picture' }, picture(v, picked)),
    h('p', { class: 'soft' }, picked ? `Rings show where “${name(picked)}” is known.` : `${count(v.locals.length + (v.more_locals || 0), 'local peer', 'local peers')}: ${v.locals.slice(0, 8).map(l => l.name).join(', ') || 'none is connected'}${v.locals.length > 8 ? ' …' : ''}. A thicker line carries more. Choose a site for what is known there.`)),
  h('div', { class: 'split' }, h('section', {}, h('h2', {}, chosen.site ? `Services known at ${chosen.site}` : 'Services'), services(v)),
    picked ? detail(picked) : h('section', { class: 'card detail' }, h('p', { class: 'empty' }, 'Choose a service: where it is known, and why not.')))]
}
