(() => {
  const bar = document.getElementById("filter");
  if (!bar) return;
  const picks = [...bar.querySelectorAll("[data-field]")], order = bar.querySelector("#order");
  const bugs = [...document.querySelectorAll("[data-rank]")], homes = bugs.map((bug) => bug.parentNode.insertBefore(document.createComment(""), bug));
  const fits = (bucket) => picks.every((pick) => !pick.value || bucket.dataset[pick.dataset.field].split("\n").includes(pick.value));
  const change = () => {
    for (const bug of bugs) bug.hidden = ![...bug.querySelectorAll(".bucket")].some(fits);
    const key = order.value, sign = key === "rank" ? 1 : -1;
    const first = (bug) => (bug.matches(".known") ? 1 : 0);
    const sorted = [...bugs].sort((a, b) => first(a) - first(b) || sign * (a.dataset[key] - b.dataset[key]));
    sorted.forEach((bug, place) => homes[place].after(bug));
    bar.querySelector("p").textContent = `${bugs.filter((bug) => !bug.hidden).length} of ${bugs.length} bugs are shown`;
  };
  bar.addEventListener("change", change);
  bar.hidden = false;
  change();
})();
