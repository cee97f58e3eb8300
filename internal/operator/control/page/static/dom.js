// Elements are made here and nowhere else. Text is always textContent, so a name cannot become markup.

const SVG = 'http://www.w3.org/2000/svg'

// plain is a text that anybody may have chosen, such that all of it is seen where it stands: glance.Shown has the same rule.
const hidden = /[^\p{L}\p{M}\p{N}\p{P}\p{S} \n]|[\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0]/gu
const plain = text => String(text).replace(hidden, '\ufffd')

// nameOf is a name that others have chosen, on one line and not too long.
export function nameOf(text) {
  const runes = [...String(text ?? '').slice(0, 1000)]
  return (runes.length > 240 ? runes.slice(0, 240).join('') + '…' : runes.join('')).replaceAll('\n', '\ufffd')
}

const read = new Set(['title', 'aria-label'])

function fill(e, attrs, kids) {
  for (const [name, value] of Object.entries(attrs || {})) {
    if (value === false || value === null || value === undefined) continue
    e.setAttribute(name, value === true ? '' : read.has(name) ? plain(value) : String(value))
  }
  for (const kid of kids.flat(Infinity)) {
    if (kid === null || kid === undefined || kid === false || kid === '') continue
    e.append(kid instanceof Node ? kid : document.createTextNode(plain(kid)))
  }
  return e
}

// h makes an element, s one of a drawing.
export const h = (tag, attrs, ...kids) => fill(document.createElement(tag), attrs, kids)
export const s = (tag, attrs, ...kids) => fill(document.createElementNS(SVG, tag), attrs, kids)

// show makes what is inside of an element equal to new elements, and leaves alone what is equal already: the focus, a selection
// and the place of a scroll bar stay.
export function show(parent, ...kids) {
  const fresh = document.createDocumentFragment()
  fill(fresh, null, kids)
  children(parent, fresh)
}

function children(old, fresh) {
  const want = [...fresh.childNodes]
  for (let i = 0; i < want.length; i++) {
    const is = old.childNodes[i]
    if (!is) old.append(want[i])
    else if (!alike(is, want[i])) old.replaceChild(want[i], is)
    else same(is, want[i])
  }
  while (old.childNodes.length > want.length) old.lastChild.remove()
}

const alike = (a, b) => a.nodeType === b.nodeType && a.nodeName === b.nodeName &&
  (a.nodeType !== 1 || a.getAttribute('data-key') === b.getAttribute('data-key'))

function same(is, want) {
  if (is.nodeType === 3) {
    if (is.data !== want.data) is.data = want.data
    return
  }
  for (const { name } of [...is.attributes]) if (!want.hasAttribute(name) && !(name === 'open' && is.nodeName === 'DETAILS')) is.removeAttribute(name)
  for (const { name, value } of [...want.attributes]) if (is.getAttribute(name) !== value) is.setAttribute(name, value)
  if (is.nodeName === 'INPUT' || is.nodeName === 'SELECT' && is === document.activeElement) return
  children(is, want)
}
