// Pages are complete without this script. It keeps them up to date: it morphs the fragments that the server sends into
// place, so that focus, scroll position and open folds stay as the reader left them.
(() => {
  'use strict';

  // --- fragments ---------------------------------------------------------

  const touched = new WeakSet(); // folds that the reader opened or closed
  document.addEventListener('click', (e) => {
    const summary = e.target.closest('summary');
    if (summary && summary.parentElement) touched.add(summary.parentElement);
  }, true);

  const keyOf = (node) => node.nodeType === 1 ? (node.id || node.getAttribute('data-key') || '') : '';
  const same = (a, b) => a.nodeType === b.nodeType && a.nodeName === b.nodeName && keyOf(a) === keyOf(b);

  function morph(from, to) {
    if (from.nodeType !== 1) {
      if (from.nodeValue !== to.nodeValue) from.nodeValue = to.nodeValue;
      return;
    }
    if (from.isEqualNode(to)) return;
    const fold = from.nodeName === 'DETAILS';
    for (const { name, value } of [...to.attributes]) {
      if (fold && name === 'open' && touched.has(from)) continue;
      if (from.getAttribute(name) !== value) from.setAttribute(name, value);
    }
    for (const { name } of [...from.attributes]) {
      // A fold that is open stays open, since somebody may be reading it.
      if (!to.hasAttribute(name) && !(fold && name === 'open')) from.removeAttribute(name);
    }
    const log = from.nodeName === 'PRE' && from.classList.contains('log');
    const atEnd = log && from.scrollHeight - from.scrollTop - from.clientHeight < 24;
    children(from, to);
    if (atEnd) from.scrollTop = from.scrollHeight;
  }

  function children(from, to) {
    let at = from.firstChild;
    for (const want of [...to.childNodes]) {
      let have = at;
      if (have && !same(have, want)) {
        const key = keyOf(want);
        have = key ? [...from.childNodes].find((n) => same(n, want)) : null;
        if (have) from.insertBefore(have, at);
      }
      if (have) {
        at = have.nextSibling;
        morph(have, want);
      } else {
        from.insertBefore(want, at);
      }
    }
    while (at) {
      const next = at.nextSibling;
      // An element that has the focus stays.
      if (!(at.nodeType === 1 && at.contains(document.activeElement))) at.remove();
      at = next;
    }
  }

  function place(html) {
    const template = document.createElement('template');
    template.innerHTML = html;
    const want = template.content.firstElementChild;
    const have = want && want.id && document.getElementById(want.id);
    const into = want && document.getElementById(want.dataset.into || '');
    if (have && have.dataset.reload !== want.dataset.reload) {
      location.reload(); // what the fragments belong to is another one
    } else if (have) {
      morph(have, want);
      if (want.dataset.window) slide(want.dataset);
    } else if (into) {
      into.append(want);
    } else if (want && want.classList.contains('step')) {
      const last = document.getElementById('step-deployed');
      if (last) last.before(want);
    }
    keepUp();
    follow();
    tick();
  }

  // --- live logs ---------------------------------------------------------

  // A live log is a window: what a reload would not show any more goes, but for what has the focus. When all of it has
  // moved on, nothing stays, so that there is no gap that nobody sees.
  function slide({ window: id, first }) {
    const list = document.getElementById(id);
    const stays = document.getElementById(first);
    for (const one of list ? [...list.children] : []) {
      if (one === stays) return;
      if (!one.contains(document.activeElement)) one.remove();
    }
  }

  // One that is at its end stays there; one that was scrolled up stays where it is.
  const follower = document.querySelector('.loglist[data-follow]');
  let following = !!follower;
  let moving = false;
  function keepUp() {
    if (!following || moving) return;
    moving = true;
    requestAnimationFrame(() => {
      moving = false;
      follower.scrollTop = follower.scrollHeight;
    });
  }
  if (follower) {
    follower.scrollTop = follower.scrollHeight;
    follower.addEventListener('scroll', () => {
      if (!moving) following = follower.scrollHeight - follower.scrollTop - follower.clientHeight < 24;
    }, { passive: true });
  }

  // Output of a stage that runs is shown from its end. A reader who scrolls up stays there, until they scroll down again.
  const followed = new WeakSet();
  function follow() {
    for (const log of document.querySelectorAll('[data-follow] pre.log')) {
      if (followed.has(log)) continue;
      followed.add(log);
      log.scrollTop = log.scrollHeight;
    }
  }
  follow();

  // --- the stream --------------------------------------------------------

  const light = document.getElementById('live');
  function say(text) {
    if (!light) return;
    light.hidden = !text;
    light.textContent = text;
  }

  let source = null;
  function connect() {
    // The answer to a refused form is at an address without a stream; the page then names another.
    const address = new URL(document.body.dataset.live || location.href, location.href);
    address.searchParams.set('live', '1');
    address.hash = '';
    source = new EventSource(address);
    source.addEventListener('open', () => say('Live'));
    source.addEventListener('error', () => say('Reconnecting…'));
    source.addEventListener('fragment', (e) => place(e.data));
    source.addEventListener('gone', () => location.reload());
  }
  if (document.body.hasAttribute('data-live')) {
    // A page in the background closes its connection.
    document.addEventListener('visibilitychange', () => {
      if (document.hidden) {
        if (source) source.close();
        source = null;
      } else if (!source) {
        connect();
      }
    });
    window.addEventListener('pagehide', () => { if (source) source.close(); source = null; });
    window.addEventListener('pageshow', (e) => { if (e.persisted && !source) connect(); });
    if (!document.hidden) connect();
  }

  // --- times -------------------------------------------------------------

  const coarse = (s) => s < 60 ? `${Math.floor(s)} s` : s < 3600 ? `${Math.floor(s / 60)} min`
    : s < 172800 ? `${Math.floor(s / 3600)} h` : `${Math.floor(s / 86400)} days`;
  const fine = (s) => s < 10 ? `${s.toFixed(1)} s` : s < 60 ? `${Math.floor(s)} s`
    : s < 3600 ? `${Math.floor(s / 60)} min ${Math.floor(s) % 60} s` : `${Math.floor(s / 3600)} h ${Math.floor(s / 60) % 60} min`;
  function set(node, text) { if (node.textContent !== text) node.textContent = text; }
  function tick() {
    const now = Date.now();
    for (const t of document.querySelectorAll('time[data-ago]')) {
      const s = (now - Date.parse(t.dateTime)) / 1000;
      if (s >= 0) set(t, s < 5 ? 'just now' : coarse(s) + ' ago');
    }
    for (const t of document.querySelectorAll('[data-since]')) {
      const s = (now - Date.parse(t.getAttribute('data-since'))) / 1000;
      if (s >= 0) set(t, fine(s));
    }
  }
  setInterval(tick, 1000);

  // --- the menu --------------------------------------------------------------

  // Where the menu is a strip or a list that scrolls, the entry of this page is in view.
  const here = document.querySelector('.side nav [aria-current]');
  if (here) {
    const nav = here.closest('nav');
    const side = here.closest('.side');
    nav.scrollLeft += Math.max(0, here.getBoundingClientRect().right - nav.getBoundingClientRect().right + 80);
    side.scrollTop += Math.max(0, here.getBoundingClientRect().bottom - side.getBoundingClientRect().bottom + 16);
  }

  // --- keys and clicks -------------------------------------------------------

  // What a row of a list leads to is its first link: j and k move the focus over these, so that Enter opens one.
  const rows = () => [...document.querySelectorAll('main tbody tr, main ol.runs > li, main ul.hits > li, main ul.edges > li, main ul.cards > li')]
    .filter((row) => row.offsetParent).map((row) => row.querySelector('a[href]')).filter(Boolean);
  function move(by) {
    const links = rows();
    const row = document.activeElement?.closest('tr, li');
    const at = links.findIndex((l) => l === document.activeElement || row?.contains(l));
    const to = links[at < 0 ? (by > 0 ? 0 : links.length - 1) : Math.min(Math.max(at + by, 0), links.length - 1)];
    to?.focus({ focusVisible: true });
    to?.scrollIntoView({ block: 'nearest' });
  }
  // The keys are listed on a page; here, they are shown above the one that is open.
  async function listKeys() {
    const link = document.getElementById('keyboard-page');
    if (!link || document.getElementById('keys')) return;
    const answer = await fetch(link.href).catch(() => null);
    const page = answer?.ok && new DOMParser().parseFromString(await answer.text(), 'text/html');
    const list = page && page.getElementById('keys');
    if (!list) {
      location.href = link.href;
      return;
    }
    const dialog = document.createElement('dialog');
    dialog.className = 'keys-dialog';
    dialog.setAttribute('aria-labelledby', 'keys-title');
    const close = document.createElement('button');
    close.type = 'button';
    close.textContent = 'Close';
    close.addEventListener('click', () => dialog.close());
    dialog.addEventListener('close', () => dialog.remove());
    dialog.append(document.adoptNode(list), close);
    document.body.append(dialog);
    dialog.showModal();
    close.focus();
  }
  let going = 0; // when g was pressed
  document.addEventListener('keydown', (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || e.isComposing) return;
    if (e.key === 'Escape') {
      const open = document.querySelector('.switcher[open]');
      if (open) {
        open.open = false;
        open.querySelector('summary').focus();
      } else if (!document.querySelector('dialog[open]')) {
        document.activeElement?.blur();
      }
      return;
    }
    const typing = e.target.closest('input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]');
    if (typing || document.querySelector('dialog[open]')) return;
    const went = Date.now() - going < 1500;
    going = 0;
    if (went) {
      const link = document.querySelector(`[data-go="${CSS.escape(e.key)}"]`);
      if (link) {
        e.preventDefault();
        link.click();
      }
      return;
    }
    switch (e.key) {
      case '/': document.getElementById('search')?.focus(); break;
      case '?': listKeys(); break;
      case 'j': move(1); break;
      case 'k': move(-1); break;
      case 'g': going = Date.now(); break;
      case 'x': {
        const box = document.activeElement?.closest('tr, li')?.querySelector('input[type=checkbox]');
        if (!box) return;
        box.click();
        break;
      }
      default: return;
    }
    e.preventDefault();
  });
  document.addEventListener('click', (e) => {
    const open = document.querySelector('.switcher[open]');
    if (open && !open.contains(e.target)) open.open = false;
    const copy = e.target.closest('[data-copy]');
    if (copy) {
      navigator.clipboard.writeText(copy.dataset.copy || copy.parentElement.querySelector('code').textContent)
        .then(() => { copy.textContent = 'Copied'; }, () => { copy.textContent = 'Press Ctrl+C'; });
    }
  });
  // Buttons that copy are shown where they work. The class is on an element that no fragment replaces.
  if (navigator.clipboard) document.documentElement.classList.add('copies');

  // --- long forms ------------------------------------------------------------

  // Without script, the parts of a long form stand below each other. Here, one is shown at a time.
  for (const form of document.querySelectorAll('form[data-sections]')) {
    const links = [...form.querySelectorAll('.sections a')];
    const parts = links.map((l) => document.getElementById(l.hash.slice(1)));
    if (links.length < 2) continue;
    const show = (at) => {
      parts.forEach((p, i) => { p.hidden = i !== at; });
      links.forEach((l, i) => i === at ? l.setAttribute('aria-current', 'true') : l.removeAttribute('aria-current'));
      form.action = form.action.split('#')[0] + '#' + parts[at].id; // the answer shows the same part
    };
    const reveal = (id) => {
      const target = id && document.getElementById(id);
      const at = parts.findIndex((p) => target && p.contains(target));
      if (at >= 0) show(at);
      return at >= 0 ? target : null;
    };
    document.addEventListener('click', (e) => {
      const link = e.target.closest('a[href^="#"]');
      const target = link && reveal(link.hash.slice(1));
      if (!target) return;
      e.preventDefault();
      history.replaceState(null, '', link.hash);
      if (!links.includes(link)) target.focus();
    });
    const wrong = parts.findIndex((p, i) => links[i].querySelector('.errors'));
    const asked = parts.findIndex((p) => '#' + p.id === location.hash);
    show(wrong >= 0 && !(asked >= 0 && links[asked].querySelector('.errors')) ? wrong : Math.max(asked, 0));
  }
  // --- settings --------------------------------------------------------------

  // The filter of the settings works without script too; here, the page follows each key.
  const finder = document.querySelector('form[data-finds]');
  if (finder) {
    const find = finder.elements.find;
    const sieve = () => {
      const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
      let any = false;
      for (const group of document.querySelectorAll('.setting-group')) {
        let some = false;
        for (const one of group.querySelectorAll('[data-words]')) {
          one.hidden = !words.every((w) => one.dataset.words.includes(w));
          some = some || !one.hidden;
        }
        group.hidden = !some;
        group.open = some && words.length > 0;
        const link = document.querySelector(`.contents a[href$="#${group.id}"]`);
        if (link) link.parentElement.hidden = !some;
        any = any || some;
      }
      document.getElementById('no-setting').hidden = any;
    };
    find.addEventListener('input', sieve);
    finder.elements.changed.addEventListener('change', () => finder.requestSubmit());
  }
  // A link into a part that is folded away unfolds it; not every browser does so by itself.
  const unfold = () => {
    const target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
    const folded = target && target.closest('details:not([open])');
    if (!folded) return;
    folded.open = true;
    target.scrollIntoView();
  };
  addEventListener('hashchange', unfold);
  unfold();
  document.addEventListener('toggle', (e) => {
    if (!e.target.matches?.('details.halt[open]')) return;
    const form = e.target.querySelector('form'); // somebody quick may be writing in it already
    if (!form.contains(document.activeElement)) form.querySelector('input:not([type=hidden])').focus();
  }, true);
  for (const select of document.querySelectorAll('.filter select')) {
    select.addEventListener('change', () => select.form.requestSubmit());
  }
})();
