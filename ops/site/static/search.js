'use strict';
(() => {
  const field = document.getElementById('q'), box = document.getElementById('results'), top = document.body.dataset.top;
  if (!field) return;
  let waiting = null;
  // The words are loaded when somebody looks for something: they are larger than most pages.
  const index = () => waiting ??= new Promise((done, fail) => {
    const s = document.createElement('script');
    s.src = top + 'index.js';
    s.onload = () => done(window.aldisIndex);
    s.onerror = fail;
    document.head.append(s);
  });
  const show = async () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(w => w.length > 1);
    if (!words.length) { box.hidden = true; return; }
    const list = [];
    for (const e of await index()) {
      const title = (e.p + ' ' + e.t).toLowerCase();
      let rank = 0;
      const all = words.every(w => {
        if (title.includes(w)) { rank += 10; return true; }
        const at = (' ' + e.w).indexOf(' ' + w);
        if (at >= 0) { rank += 2; return true; }
        return e.w.includes(w) && ++rank > 0;
      });
      if (all) list.push([rank, e]);
    }
    list.sort((a, b) => b[0] - a[0]);
    box.replaceChildren();
    const p = document.createElement('p');
    p.textContent = list.length ? `${list.length} sections` : 'Nothing has all of these words.';
    const ul = document.createElement('ul');
    for (const [, e] of list.slice(0, 20)) {
      const li = document.createElement('li'), a = document.createElement('a');
      a.href = top + e.a;
      a.textContent = e.p === e.t ? e.t : `${e.p}: ${e.t}`;
      a.addEventListener('click', () => { box.hidden = true; });
      li.append(a);
      ul.append(li);
    }
    box.append(p, ul);
    box.hidden = false;
  };
  field.addEventListener('input', show);
  field.form.addEventListener('submit', e => { e.preventDefault(); box.querySelector('a')?.click(); });
  document.addEventListener('keydown', e => {
    if (e.key === '/' && document.activeElement !== field) { e.preventDefault(); field.focus(); }
    if (e.key === 'Escape') { field.value = ''; box.hidden = true; }
  });
})();
