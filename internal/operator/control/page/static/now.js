// Now: each site, what waits and until when, and what is wrong.

import { h, s } from './dom.js'
import { bps, count, clock, moving, now, number, octets, span } from './words.js'
import { ask, order, say } from './orders.js'

const states = {
  up: ['up', 'answers'],
  silent: ['down', 'does not answer'],
  listening: ['silent', 'keeps silent by order'],
  unknown: ['not heard', 'not heard yet'],
  unmet: ['not met', 'neither site has had anything for the other'],
  gone: ['gone', 'the roster does not name it: it is not heard'],
}

// bar is a share in percent, beside its figure.
export function bar(percent, what) {
  if (percent < 0) return null
  const level = percent >= 90 ? 'bad' : percent >= 70 ? 'warn' : 'good'
  return s('svg', { class: `bar ${level}`, viewBox: '0 0 100 6', preserveAspectRatio: 'none', role: 'img', 'aria-label': `${percent} % ${what}` },
    s('rect', { class: 'rail', width: 100, height: 6 }), s('rect', { class: 'fill', width: Math.max(percent, percent > 0 ? 1 : 0), height: 6 }))
}

function card(title, value, ...more) {
  return h('section', { class: 'card' }, h('h2', {}, title), h('p', { class: 'value' }, value), more)
}

function linkCard(title, use, rate, legs) {
  return card(title, bps(use.bps), bar(use.percent, 'of the profile\'s rate'),
    h('p', { class: 'soft' }, rate ? `${use.percent} % of ${bps(rate * legs)} in the last minute` : 'in the last minute; the profile has no rate'))
}

function bearerCard(b) {
  return card(b.name, bps(b.out.bps), bar(b.out.percent, 'of the rate sent'), h('p', { class: 'soft' }, `sent in the last minute; received ${bps(b.in.bps)}`), bar(b.in.percent, 'of the rate received'))
}

function silenceCard(v) {
  const quiet = v.silence
  const lines = []
  if (!quiet.on) lines.push(h('p', { class: 'soft' }, 'This gateway transmits.'))
  else {
    lines.push(h('p', { class: 'soft' }, quiet.until ? ['until ', clock(quiet.until), ', ', moving('left', quiet.until)] : quiet.fixed ? 'by the configuration' : 'until it is told otherwise'))
    if (quiet.messages) lines.push(h('p', { class: 'soft' }, `${count(quiet.messages, 'message goes', 'messages go')} then, in about ${span(quiet.airtime_s)}`))
  }
  lines.push(h('p', { class: 'buttons' }, h('button', { type: 'button', 'data-do': quiet.on ? 'speak' : 'hush', 'data-on': 'click', disabled: quiet.fixed },
    quiet.on ? 'End the silence' : 'Keep silent…')))
  return card('Radio silence', quiet.on ? 'Silent' : 'Off', lines)
}

function there(q) {
  const lost = q.unknown ? h('span', { class: 'soft' }, q.expected ? `; of ${q.unknown} nobody can tell` : 'nobody can tell') : null
  return [q.expected && moving('in', q.expected), lost]
}

function last(queue) {
  if (!queue.length) return h('span', { class: 'soft' }, '–')
  return there({ expected: queue.map(q => q.expected).filter(Boolean).sort().at(-1), unknown: queue.reduce((n, q) => n + (q.unknown || 0), 0) })
}

function again(site) {
  const all = site.again + site.came
  return all ? `${(100 * site.again / all).toFixed(site.again && 10 * site.again < all ? 1 : 0)} %` : '–'
}

function cell(label, ...kids) { return h('td', { 'data-label': label }, h('span', { class: 'cell' }, kids)) }

function way(w) {
  const name = (w.used ? '★ ' : '') + w.bearer + (w.via ? ` via ${w.via}` : '')
  const takes = w.used || w.state === 'up' ? `${name}: ${span(w.short_s)} to ${span(w.long_s)}` : `${name}: ${(states[w.state] || [w.state])[0]}`
  return w.direct ? [takes, '; direct session for ', moving('age', w.direct), `, ${octets(w.spared || 0)}`] : takes
}

function siteRow(v, site) {
  const [word, long] = states[site.state] || [site.state, site.state]
  return h('tr', { 'data-key': `site-${site.id}` },
    h('th', { scope: 'row' }, h('span', { class: `lamp ${site.state}`, 'aria-hidden': 'true' }), h('span', { class: 'name' }, site.name),
      (site.ways || []).map(w => h('span', { class: 'way soft' }, way(w)))),
    cell('Link', h('span', { class: `state ${site.state}`, title: long }, word), site.since && h('span', { class: 'soft' }, ' for ', moving('age', site.since))),
    cell('Heard', site.heard ? moving('ago', site.heard) : h('span', { class: 'soft' }, 'never')),
    cell('Sends', bps(site.out.bps), v.link.each && bar(site.out.percent, 'of its rate sent')),
    cell('Receives', bps(site.in.bps), v.link.each && bar(site.in.percent, 'of its rate received')),
    cell('Sent again', again(site)),
    cell('Delay', site.delay_s ? span(site.delay_s) : '–'),
    cell('Takes', `${span(site.short_s)} to ${span(site.long_s)}`),
    cell('Waits', site.waiting + site.under_way ? [number(site.waiting + site.under_way), h('span', { class: 'soft' }, ` ${octets(site.octets)}`)] : '0'),
    cell('All there', last(site.queue)))
}

function sites(v) {
  const loss = v.link.send_loss_percent
  const profile = [v.link.send_bps ? `sends ${bps(v.link.send_bps)}` : 'sends at any rate', v.link.receive_bps ? `receives ${bps(v.link.receive_bps)}` : 'receives at any rate', `loses ${loss} % of frames`]
  const told = v.bearers ? 'A star is beside the link that messages take.' : `The profile ${v.profile}: ${profile.join(', ')}.`
  return h('section', {}, h('h2', {}, 'Sites'),
    h('div', { class: 'wide', tabindex: 0, role: 'region', 'aria-label': 'Sites' }, h('table', { class: 'cards' },
      h('thead', {}, h('tr', {}, ['Site', 'Link', 'Heard', 'Sends', 'Receives', 'Sent again', 'Delay', 'Takes', 'Waits', 'All there'].map(t => h('th', { scope: 'col' }, t)))),
      h('tbody', {}, v.sites.map(site => siteRow(v, site))))),
    h('p', { class: 'soft' }, `${told} Rates are those of the last minute; sent again is of messages in the last ten; the delay is the mean from custody here to the receipt; takes is what messages of 200 and of 20,000 octets should take now.`))
}

function queue(v) {
  const body = v.queue.map(q => h('tr', { 'data-key': q.precedence },
    h('th', { scope: 'row' }, h('span', { class: `prec ${q.precedence}` }, q.precedence)),
    cell('Messages', number(q.messages)), cell('Size', octets(q.octets)), cell('Oldest', moving('age', q.oldest)), cell('All there', there(q))))
  return h('section', {}, h('h2', {}, 'What waits'),
    v.queue.length ? h('div', { class: 'wide', tabindex: 0, role: 'region', 'aria-label': 'What waits' }, h('table', { class: 'cards' },
      h('thead', {}, h('tr', {}, ['Precedence', 'Messages', 'Size', 'Oldest', 'All there'].map(t => h('th', { scope: 'col' }, t)))),
      h('tbody', {}, body)))
      : h('p', { class: 'empty' }, v.sites.some(site => site.waiting + site.under_way) ? 'Nothing waits for its turn: all is under way or held.' : 'Nothing waits.'))
}

function machines(v) {
  if (!v.machines) return null
  return h('section', {}, h('h2', {}, 'Machines of this site'),
    h('ul', { class: 'alarms', 'aria-label': 'Machines of this site' }, v.machines.map(m => h('li', { 'data-key': m.at },
      h('span', { class: 'tag' }, m.at), h('span', {}, m.text, m.since && h('span', { class: 'soft' }, ' – for ', moving('age', m.since)))))))
}

function alarms(v) {
  if (!v.alarms.length) return null
  return h('ul', { class: 'alarms', 'aria-label': 'Alarms' }, v.alarms.map(a => h('li', { class: a.level },
    h('span', { class: 'tag' }, { bad: 'Alarm', warn: 'Look', note: 'Note' }[a.level]), h('span', {}, a.text, a.since && h('span', { class: 'soft' }, ' – for ', moving('age', a.since))))))
}

export function draw({ view: v }) {
  const waits = v.sites.reduce((n, site) => n + site.waiting + site.under_way, 0)
  const oldest = v.queue.map(q => q.oldest).sort()[0]
  const legs = v.link.each ? Math.max(v.sites.length, 1) : 1
  return [alarms(v),
    h('div', { class: 'facts' },
      v.bearers ? v.bearers.map(b => bearerCard(b)) : [linkCard('Sends', v.out, v.link.send_bps, legs), linkCard('Receives', v.in, v.link.receive_bps, legs)],
      card('On their way', count(waits, 'message', 'messages'), h('p', { class: 'soft' }, oldest ? ['the oldest waits for ', moving('age', oldest)] : 'nothing waits for its turn'), v.queue.length ? h('p', { class: 'soft' }, 'all there: ', last(v.queue)) : null),
      silenceCard(v)),
    machines(v), sites(v), queue(v)]
}

export async function act(what, at, { view: v }) {
  if (!v.orders) return say('Orders are not taken here', 'Name a token file (http.token_file) in the configuration, or give the order on the gateway\'s machine: gateway silence.')
  if (what === 'speak') return order('/silence', { on: false })
  const length = h('select', {}, [['', 'until told otherwise'], ['15', '15 minutes'], ['60', '1 hour'], ['240', '4 hours'], ['720', '12 hours'], ['1440', '24 hours']].map(([value, text]) => h('option', { value }, text)))
  const announce = h('input', { type: 'checkbox', checked: true })
  const values = await ask('Keep silent', 'This gateway will transmit nothing. It receives, and keeps what has to go.', [['for', 'For', length], ['announce', 'Tell the other sites first', announce]], 'Keep silent')
  if (!values) return
  const body = { on: true, announce: values.announce }
  if (values.for) body.until = new Date(now() + 60000 * Number(values.for)).toISOString()
  await order('/silence', body)
}
