// Orders to the gateway. Each needs the token of http.token_file, which is asked for when the first is given. It is kept in this
// module alone, until the page is closed.

import { h, show } from './dom.js'

let token = ''

const box = () => document.getElementById('dialog')

// ask shows a form and gives its values, or null when it was closed. Fields: [name, label, element].
export function ask(title, about, fields, yes) {
  const dialog = box()
  const back = document.activeElement
  dialog.replaceChildren()
  show(dialog, h('form', { method: 'dialog' },
    h('h2', { id: 'dialog-title' }, title), about && h('p', {}, about),
    fields.map(([name, label, input]) => { input.name = name; return h('label', { class: input.type === 'checkbox' ? 'row' : '' }, h('span', {}, label), input) }),
    h('p', { class: 'buttons' }, h('button', { type: 'submit', value: 'yes', class: 'main' }, yes), h('button', { type: 'submit', value: 'no', formnovalidate: true }, 'Cancel'))))
  dialog.returnValue = ''
  dialog.showModal()
  dialog.querySelector('input,select,button')?.focus()
  return new Promise(done => dialog.addEventListener('close', () => {
    const values = Object.fromEntries(fields.map(([name, , input]) => [name, input.type === 'checkbox' ? input.checked : input.value]))
    dialog.replaceChildren()
    back?.focus()
    done(dialog.returnValue === 'yes' ? values : null)
  }, { once: true }))
}

// say shows a sentence that has to be read.
export async function say(title, text) { await ask(title, text, [], 'Good') }

async function needToken(why) {
  const values = await ask('Orders need a token', why,
    [['token', 'Token', h('input', { type: 'password', autocomplete: 'off', required: true, spellcheck: 'false' })]], 'Go on')
  if (!values) return false
  token = values.token.trim()
  return true
}

// order gives one. It answers with what the gateway says, or null: it was not given or not obeyed, and that has been said.
export async function order(path, what) {
  if (!token && !await needToken('It is the content of the file that http.token_file names. This page forgets it when it is closed.')) return null
  for (;;) {
    let answer
    try {
      answer = await fetch(path, {
        method: 'POST', credentials: 'omit', redirect: 'error',
        headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${token}` }, body: JSON.stringify(what),
      })
    } catch {
      await say('The gateway does not answer', 'Nobody knows whether the order was obeyed: look at the view before you give it again.')
      return null
    }
    if (answer.ok) return answer.json()
    const text = (await answer.text()).slice(0, 600)
    if (answer.status === 403) {
      token = ''
      if (await needToken(text)) continue
      return null
    }
    if (text.startsWith('the order was given')) await say('Nobody knows whether the order was obeyed', `Look before you give it again. ${text}`)
    else await say('The order was not obeyed', text)
    return null
  }
}
