// Light, dark, system: at once, and kept in a cookie that the server draws by. Without script the buttons post the form.
(() => {
  const YEAR = 60 * 60 * 24 * 365;

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-themes] button");
    if (!button) return;
    event.preventDefault();
    choose(button.value);
    for (const each of button.parentElement.querySelectorAll("button")) each.setAttribute("aria-pressed", String(each === button));
  });

  function choose(theme) {
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    const secure = location.protocol === "https:" ? "; secure" : "";
    document.cookie = `theme=${theme}; path=/; max-age=${YEAR}; samesite=lax${secure}`;
  }
})();
