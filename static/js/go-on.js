// After it was shown who somebody is: what they were doing goes on. Without script a button does it.
(() => {
  const form = document.querySelector("form[data-go-on]");
  if (form) HTMLFormElement.prototype.submit.call(form); // whatever its fields are called
})();
