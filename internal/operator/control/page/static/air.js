// Air: what the link carried in the last hours, and what the month costs.

import { h, s } from './dom.js'
import { bps, clock, count, number, now, octets, span } from './words.js'

const kinds = ['payload', 'advertisement', 'state', 'ack', 'repair', 'header', 'key', 'link_probe']
const words = { payload: 'messages', advertisement: 'advertisements', state: 'news of sites', ack: 'acknowledgements', repair: 'repairs', header: 'headers', key: 'greetings', link_probe: 'link probes' }

// adapters are the protocol adapters of the ledger, and what belongs to none.
const adapters = ['jxta', 'tak', 'xmpp', 'corpus', 'relay', 'other', 'gateway']
const faces = { jxta: 'JXTA', tak: 'TAK', xmpp: 'XMPP', corpus: 'corpora', relay: 'sealed for relays', other: 'unknown adapters', gateway: 'the gateway itself' }

const chosen = { hours: 6, by: 'kinds', way: 'both' }
const prices = { price: '', currency: '' }
try { Object.assign(prices, JSON.parse(localStorage.getItem('aldis-price') || '{}')) } catch { /* none is kept */ }

let air = null, asked = '', at = 0

async function fetchAir(state) {
  const want = `${chosen.hours} ${state.view?.minute}`
  if (want === asked && now() - at < 60000) return
  asked = want
  at = now()
  const answer = await fetch(`/air?hours=${chosen.hours}`).catch(() => null)
  if (answer?.ok) { air = await answer.json(); state.redraw() } else asked = ''
}

export function open(state) { fetchAir(state) }
export function told(state) { fetchAir(state) }
export function second(state) { if (now() - at >= 60000) fetchAir(state) }

export function act(what, at, state) {
  if (what === 'price') {
    prices[at.name] = at.value.slice(0, 12)
    try { localStorage.setItem('aldis-price', JSON.stringify(prices)) } catch { /* it holds for this page */ }
    state.redraw()
    return
  }
  chosen[what] = what === 'hours' ? Number(at.value) : at.value
  if (what === 'hours') fetchAir(state)
  state.redraw()
}

function choice(name, legend, options) {
  return h('fieldset', { class: 'choice' }, h('legend', {}, legend), options.map(([value, text]) => h('label', {},
    h('input', { type: 'radio', name, value, 'data-do': name, 'data-on': 'change', checked: String(chosen[name]) === value }), h('span', {}, text))))
}

// series are those that are shown: name, octets of each column, colour.
function series() {
  const named = new Map()
  for (const [key, values] of Object.entries(air[chosen.by])) {
    const gap = key.indexOf(' ')
    const way = key.slice(0, gap), name = key.slice(gap + 1)
    if (chosen.way !== 'both' && chosen.way !== way) continue
    const sum = named.get(name)
    named.set(name, sum ? sum.map((x, i) => x + values[i]) : values)
  }
  let list = [...named].map(([name, values]) => ({ name, values, total: values.reduce((a, b) => a + b, 0) }))
  if (chosen.by === 'kinds') {
    list.sort((a, b) => kinds.indexOf(a.name) - kinds.indexOf(b.name))
    return list.map(x => ({ ...x, label: words[x.name], colour: kinds.indexOf(x.name) }))
  }
  if (chosen.by === 'adapters') return list.map(x => {
    const [adapter, kind] = x.name.split(' ')
    const colour = adapters.indexOf(adapter), shade = kinds.indexOf(kind)
    return { ...x, adapter, kind: words[kind], label: `${faces[adapter]}, ${words[kind]}`, colour, shade, order: colour * kinds.length + shade }
  }).sort((a, b) => a.order - b.order)
  list.sort((a, b) => b.total - a.total)
  if (list.length > 7) {
    const rest = list.slice(7)
    list = [...list.slice(0, 7), { name: 'others', values: rest[0].values.map((_, i) => rest.reduce((sum, x) => sum + x.values[i], 0)), total: rest.reduce((sum, x) => sum + x.total, 0) }]
  }
  return list.map((x, i) => ({ ...x, label: x.name, colour: i }))
}

const W = 900, H = 300, left = 82, right = 8, top = 14, bottom = 30

// round is the next larger of 1, 2, 5 times a power of ten.
function round(x) {
  const p = 10 ** Math.floor(Math.log10(x || 1))
  return [1, 2, 5, 10].map(m => m * p).find(v => v >= x) || 1
}

function plot(list, limit) {
  const n = air.n, rate = x => x * 8 / air.step_s
  const sums = Array.from({ length: n }, (_, i) => list.reduce((sum, x) => sum + x.values[i], 0))
  const most = round(Math.max(...sums.map(rate), 8))
  const x = i => left + (W - left - right) * i / n
  const y = v => top + (H - top - bottom) * (1 - Math.min(v / most, 1))
  const below = new Array(n).fill(0)
  const areas = list.map(one => {
    let up = '', down = ''
    for (let i = 0; i < n; i++) {
      const a = rate(below[i]), b = rate(below[i] + one.values[i])
      up += `${i ? 'L' : 'M'}${x(i).toFixed(1)} ${y(b).toFixed(1)}L${x(i + 1).toFixed(1)} ${y(b).toFixed(1)}`
      down = `L${x(i + 1).toFixed(1)} ${y(a).toFixed(1)}L${x(i).toFixed(1)} ${y(a).toFixed(1)}${down}`
      below[i] += one.values[i]
    }
    return s('path', { class: `c${one.colour}`, 'fill-opacity': one.shade ? 1 - one.shade / 12 : null, d: `${up}${down}Z` }, s('title', {}, `${one.label}: ${octets(one.total)}`))
  })
  const lines = [0, 0.5, 1].map(f => [s('line', { class: 'grid', x1: left, x2: W - right, y1: y(f * most), y2: y(f * most) }),
    s('text', { x: left - 8, y: y(f * most) + 4, 'text-anchor': 'end' }, bps(f * most))])
  const from = Date.parse(air.from), end = from + n * air.step_s * 1000
  const every = [5, 10, 15, 30, 60, 120, 240, 480, 720].map(m => m * 60000).find(ms => (end - from) / ms <= 7)
  const marks = []
  const offset = new Date(from).getTimezoneOffset() * 60000
  for (let t = Math.ceil((from - offset) / every) * every + offset; t < end; t += every) {
    const px = left + (W - left - right) * (t - from) / (end - from)
    if (px < left + 12 || px > W - 24) continue
    const d = new Date(t)
    marks.push(s('line', { class: 'grid', x1: px, x2: px, y1: H - bottom, y2: H - bottom + 5 }),
      s('text', { x: px, y: H - 8, 'text-anchor': 'middle' }, `${String(d.getHours()).padStart(2, '0')}:${String(d.getMinutes()).padStart(2, '0')}`))
  }
  const began = Date.parse(air.began)
  const unknown = began > from ? s('rect', { class: 'unknown', x: left, y: top, width: Math.max((W - left - right) * (Math.min(began, end) - from) / (end - from), 0), height: H - top - bottom }, s('title', {}, 'before the gateway was started')) : null
  const roof = limit && limit <= most ? s('line', { class: 'roof', x1: left, x2: W - right, y1: y(limit), y2: y(limit) }) : null
  return s('svg', { class: 'plot', viewBox: `0 0 ${W} ${H}`, role: 'img', 'aria-label': `What the link carried in the last ${count(chosen.hours, 'hour', 'hours')}: ${list.map(one => `${one.label} ${octets(one.total)}`).join(', ') || 'nothing'}` },
    unknown, lines, areas, roof, marks)
}

// legend has a line for each series, or for each adapter with its kinds.
function legend(list) {
  const lines = chosen.by !== 'adapters' ? list.map(one => [one.colour, one.label, octets(one.total)])
    : adapters.map((name, colour) => [colour, faces[name], list.filter(one => one.adapter === name)]).filter(([,, of]) => of.length)
      .map(([colour, label, of]) => [colour, label, `${octets(of.reduce((sum, one) => sum + one.total, 0))}: ${of.map(one => `${one.kind} ${octets(one.total)}`).join(', ')}`])
  return h('ul', { class: 'legend' }, lines.map(([colour, label, much]) => h('li', {},
    s('svg', { viewBox: '0 0 10 10', 'aria-hidden': 'true' }, s('rect', { class: `c${colour}`, width: 10, height: 10, rx: 2 })), h('span', {}, label), h('span', { class: 'soft' }, ` ${much}`))))
}

function month(v) {
  const m = air.month, all = m.sent + m.received
  const since = Date.parse(m.since), ends = Date.parse(m.ends), passed = (now() - since) / 1000, whole = (ends - since) / 1000
  const more = passed >= 600 ? whole / passed : 0
  const unit = v.bearers ? '' : { octets: 'MB', minutes: 'minute', none: '' }[v.link.tariff]
  const used = v.link.tariff === 'minutes' ? m.minutes : all / 1e6
  const money = x => `${(x * Number(prices.price)).toFixed(2)} ${prices.currency}`.trim()
  const priced = unit && Number(prices.price) > 0
  const rows = [
    ['Sent', octets(m.sent)], ['Received', octets(m.received)],
    ['Minutes with something on the air', number(m.minutes)],
    more ? [`Forecast until ${clock(m.ends)}`, `${octets(Math.round(all * more))}, ${count(Math.round(m.minutes * more), 'minute', 'minutes')}`] : null,
    priced ? ['Cost so far', money(used)] : null,
    priced && more ? ['Forecast of the cost', money(used * more)] : null,
  ].filter(Boolean)
  return h('section', { class: 'card month' }, h('h2', {}, 'This month'),
    h('p', { class: 'soft' }, `Counted since ${clock(m.since)}, over restarts too. By site, and earlier months: gateway bill. `,
      v.bearers ? 'All links together; gateway bill has the tariff of each.' : { octets: 'The profile says: the bill grows with octets.', minutes: 'The profile says: the bill grows with minutes of a call.', none: 'The profile says: the link has no tariff.' }[v.link.tariff]),
    h('dl', {}, rows.map(([what, much]) => [h('dt', {}, what), h('dd', {}, much)])),
    unit ? h('p', { class: 'price' },
      h('label', {}, h('span', {}, `Price of a ${unit}`), h('input', { name: 'price', inputmode: 'decimal', size: 6, value: prices.price, 'data-do': 'price', 'data-on': 'change', autocomplete: 'off' })),
      h('label', {}, h('span', {}, 'Currency'), h('input', { name: 'currency', size: 4, value: prices.currency, 'data-do': 'price', 'data-on': 'change', autocomplete: 'off' }))) : null,
    unit ? h('p', { class: 'soft' }, 'Prices are kept in this browser.') : null)
}

export function draw({ view: v }) {
  if (!air) return h('p', { class: 'empty' }, 'Asking for the ledger')
  const list = series()
  const limit = chosen.way === 'received' ? v.link.receive_bps : chosen.way === 'sent' ? v.link.send_bps : 0
  const total = list.reduce((sum, one) => sum + one.total, 0)
  return [
    h('section', {}, h('h2', {}, `On the air: ${octets(total)} in ${count(chosen.hours, 'hour', 'hours')}`),
      h('form', { class: 'choices' },
        choice('hours', 'Time', [['1', '1 h'], ['6', '6 h'], ['24', '24 h'], ['48', '48 h']]),
        choice('by', 'By', [['kinds', 'kind'], ['adapters', 'adapter'], ['sites', 'site']]),
        choice('way', 'Direction', [['both', 'both'], ['sent', 'sent'], ['received', 'received']])),
      h('figure', {}, h('div', { class: 'wide', tabindex: 0, role: 'region', 'aria-label': 'Plot' }, plot(list, limit)),
        h('figcaption', {}, legend(list),
          total ? null : h('p', { class: 'empty' }, 'Nothing was on the air.'))),
      h('p', { class: 'soft' }, `IP octets of the airtime ledger, each column the mean of ${span(air.step_s)}. Nothing is known of the time before ${clock(air.began)}.`,
        chosen.by === 'adapters' ? ' A received message counts when the gateway has read it. Headers, acknowledgements and greetings belong to the gateway itself. Each adapter has one colour, with a paler shade for each other kind than messages.' : null)),
    month(v)]
}
