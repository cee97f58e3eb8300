// Figures and times in words.

import { h } from './dom.js'

const group = n => String(n).replace(/\B(?=(\d{3})+(?!\d))/g, ',')

export const count = (n, one, many) => `${group(n)} ${n === 1 ? one : many}`

export const number = group

export function octets(n) {
  if (n < 1000) return `${n} B`
  if (n < 1e6) return `${(n / 1e3).toFixed(n < 1e4 ? 1 : 0)} kB`
  return `${(n / 1e6).toFixed(n < 1e7 ? 2 : 1)} MB`
}

export function bps(n) {
  if (n < 1000) return `${n} bit/s`
  if (n < 1e6) return `${(n / 1e3).toFixed(n < 1e5 ? 1 : 0)} kbit/s`
  return `${(n / 1e6).toFixed(1)} Mbit/s`
}

// span is a length of time, in its two largest units.
export function span(seconds) {
  let s = Math.max(0, Math.round(seconds))
  if (s < 60) return `${s} s`
  if (s < 3600) return s < 600 && s % 60 ? `${Math.floor(s / 60)} min ${s % 60} s` : `${Math.floor(s / 60)} min`
  const m = Math.floor(s / 60)
  if (m < 1440) return m % 60 ? `${Math.floor(m / 60)} h ${m % 60} min` : `${m / 60} h`
  const hours = Math.floor(m / 60)
  return hours % 24 ? `${Math.floor(hours / 24)} d ${hours % 24} h` : `${hours / 24} d`
}

const two = n => String(n).padStart(2, '0')

// clock is a time of today, or with its day.
export function clock(at) {
  const d = new Date(at)
  const time = `${two(d.getHours())}:${two(d.getMinutes())}`
  const today = new Date().toDateString() === d.toDateString()
  return today ? time : `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ${time}`
}

// The forms of a time that goes on: how long ago, since when, how long yet.
const forms = {
  ago: (at, now) => `${span((now - at) / 1000)} ago`,
  age: (at, now) => span((now - at) / 1000),
  left: (at, now) => at > now ? `${span((at - now) / 1000)} left` : 'ends now',
  in: (at, now) => at - now < 60000 ? 'within a minute' : `${clock(at)}, in ${span(Math.round((at - now) / 60000) * 60)}`,
}

// skew is by how much the gateway's clock is ahead of the browser's.
let skew = 0
export function setSkew(ms) { skew = ms }
export const now = () => Date.now() + skew

// moving is a time that goes on by itself.
export function moving(form, at) {
  const t = Date.parse(at)
  return h('time', { datetime: new Date(t).toISOString(), 'data-form': form, title: new Date(t).toLocaleString() }, forms[form](t, now()))
}

// tick brings all of them to now.
export function tick(root) {
  for (const e of root.querySelectorAll('time[data-form]')) {
    const text = forms[e.dataset.form](Date.parse(e.dateTime), now())
    if (e.textContent !== text) e.firstChild.data = text
  }
}
