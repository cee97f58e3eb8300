// The colours that were chosen here before, in force before anything is drawn.
{
  let chosen = null
  try { chosen = localStorage.getItem('aldis-theme') } catch { /* a browser that keeps nothing */ }
  if (chosen === 'dark' || chosen === 'light') document.documentElement.dataset.theme = chosen
}
