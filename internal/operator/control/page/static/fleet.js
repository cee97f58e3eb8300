// Fleet: who is on which channel, who is told of how much, and what each gateway says of itself.

import { h, s } from './dom.js'
import { bar } from './now.js'
import { clock, count, moving, number } from './words.js'

const W = 900, H = 300, head = 20

// size is how many gateways a node of a tree has, itself included.
const size = node => node.kids.reduce((n, kid) => n + size(kid), node.name ? 1 : 0)

const short = (text, width) => {
  const n = Math.floor((width - 8) / 7.5), runes = [...text]
  return n < 2 ? '' : runes.length > n ? `${runes.slice(0, n - 1).join('')}…` : text
}

// tiles cut a rectangle among nodes by their size, along its longer side; what is behind a node lies inside of it.
function tiles(nodes, x, y, w, ht, drawn) {
  const all = nodes.reduce((n, node) => n + size(node), 0)
  let at = 0
  for (const node of nodes) {
    const share = size(node) / all, wide = w >= ht
    const box = wide ? [x + at * w, y, share * w, ht] : [x, y + at * ht, w, share * ht]
    at += share
    const [bx, by, bw, bh] = box.map((v, i) => i < 2 ? v + 1 : Math.max(v - 2, 0))
    drawn.push(s('g', { class: `tile ${node.state}`, 'data-key': node.key },
      s('title', {}, node.words), s('rect', { x: bx.toFixed(1), y: by.toFixed(1), width: bw.toFixed(1), height: bh.toFixed(1), rx: 4 }),
      bh < 15 ? null : s('text', { x: (bx + 5).toFixed(1), y: (by + 15).toFixed(1) }, short(node.label, bw))))
    if (node.kids.length && bh > head + 4) tiles(node.kids, bx + 2, by + head, bw - 4, bh - head - 2, drawn)
  }
  return drawn
}

function treeMap(nodes, label) {
  return h('div', { class: 'wide', tabindex: 0, role: 'region', 'aria-label': label },
    s('svg', { class: 'plot tiles', viewBox: `0 0 ${W} ${H}`, role: 'img', 'aria-label': `${label}: ${nodes.map(n => n.words).join('; ')}` }, tiles(nodes, 0, 0, W, H, [])))
}

// channels are the links of this gateway, with the sites on each.
function channels(v) {
  const heard = link => v.channels?.find(c => c.link === link)
  const list = names => names?.join(', ') || 'nobody'
  const hears = (link, name) => {
    const site = heard(link)?.sites.find(x => x.site === name)
    return site ? `; hears ${list(site.hears)}${site.hears_not ? `, does not hear ${list(site.hears_not)}` : ''}` : ''
  }
  const on = new Map(v.bearers?.map(b => [b.name, []]) ?? [[v.profile, []]])
  for (const site of v.sites) {
    for (const way of site.ways?.length ? site.ways : [{ bearer: v.bearers ? v.bearers[0].name : v.profile, state: site.state, used: true }]) {
      const kids = on.get(way.bearer) ?? []
      on.set(way.bearer, kids)
      const words = `${site.name}${way.via ? ` via ${way.via}` : ''}: ${way.state}${way.used ? ', messages take this link' : ''}${hears(way.bearer, site.name)}`
      kids.push({ key: `${way.bearer} ${site.id}`, name: site.name, label: (way.used && site.ways ? '★ ' : '') + site.name, state: way.state, words, kids: [] })
    }
  }
  const parts = link => {
    const c = heard(link)
    return c ? `; hear each other: ${c.components.map(list).join(' | ')}; first to speak for others: ${list(c.speaks)}` : ''
  }
  const blocks = [...on].filter(([, kids]) => kids.length).map(([name, kids]) => ({ key: name, name: '', label: name, state: 'channel', words: `${name}: ${count(kids.length, 'site', 'sites')}${parts(name)}`, kids }))
  return blocks.length ? treeMap(blocks, 'Channels') : h('p', { class: 'empty' }, 'There are no other sites.')
}

function told(v) {
  const share = (n, all) => all ? Math.round(100 * n / all) : 0
  const most = Math.max(...v.sites.map(site => site.far_items), 1)
  const view = (...words) => h('span', { class: 'soft view' }, words)
  return [h('div', { class: 'wide', tabindex: 0, role: 'region', 'aria-label': 'Who is told' }, h('table', { class: 'cards' },
    h('thead', {}, h('tr', {}, ['Site', `Told there of ${number(v.items)} entries of this site`, 'Told here of it'].map(t => h('th', { scope: 'col' }, t)))),
    h('tbody', {}, v.sites.map(site => h('tr', { 'data-key': `told-${site.id}` }, h('th', { scope: 'row' }, site.name),
      h('td', { 'data-label': 'Told there' }, h('span', { class: 'cell' }, number(site.items_held), meter(share(site.items_held, v.items), 'of the entries')),
        site.views ? view(`view ${site.views.there}`, site.views.wants && site.views.wants !== 'complete' ? `, wants ${site.views.wants}` : null) : null),
      h('td', { 'data-label': 'Told here' }, h('span', { class: 'cell' }, number(site.far_items), meter(share(site.far_items, most), 'of the most')),
        site.views ? view(`view ${site.views.here}`, site.views.by ? `: ${parts(site.views.by)}` : null) : null)))))),
  v.sites.filter(site => site.views?.entries).map(site => h('details', { 'data-key': `by-${site.id}` }, h('summary', {}, `Peers of ${site.name} that are known here, and by which part of its view`),
    h('ul', {}, site.views.entries.map(e => h('li', {}, e.name, h('span', { class: 'soft' }, ` ${e.by.split(', ').map(reason).join(', ')}`))), site.views.more ? h('li', { class: 'soft' }, `and ${number(site.views.more)} more`) : null)))]
}

const because = { ask: 'asked for by name', id: 'asked for by id', before: 'told under an earlier view' }
const reason = part => because[part] ?? `by ${part}`
const parts = by => Object.entries(by).map(([part, n]) => `${number(n)} ${reason(part)}`).join(', ')

// meter is a bar in which much is not bad.
function meter(percent, what) {
  const b = bar(Math.min(percent, 100), what)
  b.setAttribute('class', 'bar good')
  return b
}

const waits = w => ['override', 'flash', 'immediate', 'priority', 'routine', 'deferred'].filter(p => w[p]).map(p => h('span', { class: `prec ${p}` }, `${w[p]} ${p}`))
const all = w => Object.values(w).reduce((a, b) => a + b, 0)

// tree is the gateways, each with those that give their records to it. Who says to stand in a circle is at the top.
function tree(rows) {
  const nodes = new Map(rows.map(r => [r.site, { key: `t${r.id}`, name: r.site, label: `${r.site}${all(r.waiting) ? ` ${all(r.waiting)}` : ''}`, state: r.state === 'silent' ? 'listening' : r.state, words: `${r.site}: ${r.state}, ${count(all(r.waiting), 'message waits', 'messages wait')}`, kids: [] }]))
  const top = []
  for (const r of rows) {
    const seen = new Set()
    let up = r
    while (up?.parent && nodes.has(up.parent) && !seen.has(up.site)) {
      seen.add(up.site)
      up = rows.find(x => x.site === up.parent)
    }
    if (r.parent && nodes.has(r.parent) && !seen.has(up?.site)) nodes.get(r.parent).kids.push(nodes.get(r.site))
    else top.push(nodes.get(r.site))
  }
  return top
}

function row(r) {
  if (r.state === 'unheard') return h('tr', { 'data-key': `f${r.id}` }, h('th', { scope: 'row' }, r.site), h('td', { 'data-label': 'State' }, 'not heard'), h('td', { colspan: 5 }))
  return h('tr', { 'data-key': `f${r.id}` }, h('th', { scope: 'row' }, r.site, r.proven ? null : ' ?'),
    h('td', { 'data-label': 'State' }, h('span', { class: `fleet ${r.state}` }, r.state), r.silent_until ? [' until ', clock(r.silent_until)] : null),
    h('td', { 'data-label': 'Said' }, moving('ago', r.read)),
    h('td', { 'data-label': 'Waits' }, h('span', { class: 'cell' }, all(r.waiting) ? waits(r.waiting) : '0')),
    h('td', { 'data-label': 'Oldest' }, r.oldest ? moving('age', r.oldest) : '–'),
    h('td', { 'data-label': 'Links up' }, `${r.up} of ${r.bearers}`),
    h('td', { 'data-label': 'Gives it to' }, r.parent || '–'))
}

function fleet(f) {
  return h('section', {}, h('h2', {}, f.headquarters ? 'The fleet' : 'What passes through this gateway'),
    treeMap(tree(f.gateways), 'Who gives its record to whom'),
    h('div', { class: 'wide', tabindex: 0, role: 'region', 'aria-label': 'What the gateways say' }, h('table', { class: 'cards' },
      h('thead', {}, h('tr', {}, ['Gateway', 'State', 'Said', 'Waits', 'Oldest', 'Links up', 'Gives it to'].map(t => h('th', { scope: 'col' }, t)))),
      h('tbody', {}, h('tr', { class: 'sum', 'data-key': 'sum' }, h('th', { scope: 'row' }, `${f.sum.gateways} of ${f.gateways.length}`), h('td', {}), h('td', {}),
        h('td', { 'data-label': 'Waits' }, h('span', { class: 'cell' }, all(f.sum.waiting) ? waits(f.sum.waiting) : '0')), h('td', { 'data-label': 'Oldest' }, f.sum.oldest ? moving('age', f.sum.oldest) : '–'),
        h('td', { 'data-label': 'Links up' }, `${f.sum.up} of ${f.sum.bearers}`), h('td', {})), f.gateways.map(row)))),
    h('p', { class: 'soft' }, `Each gateway says this once in ${Math.round(f.period_s / 60)} minutes. The first row is the sum of the others. A question mark: the headquarters alone can tell that nobody on the way has changed it.`))
}

export function draw({ view: v }) {
  return [h('section', {}, h('h2', {}, 'Channels'), channels(v), h('p', { class: 'soft' }, v.bearers ? 'A block for each link, with the sites on it. A star: messages take this link.' : 'The sites on the link.')),
    h('section', {}, h('h2', {}, 'Who is told of whom'), told(v), v.sites.some(site => site.views) ? h('p', { class: 'soft' }, 'Entries are peers, pipes and advertisements. The view says of which JXTA peers a site is told, in groups that no rule names.') : null),
    v.fleet ? fleet(v.fleet) : h('p', { class: 'empty' }, 'With [fleet] in the configuration the gateways say here what they are like.')]
}

export function act() {}
