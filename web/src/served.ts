// Where `penstock serve` gave the page: runs are made by the native program, and runs of its folder can be looked at.

/** The token that the link held: without it the server computes and writes nothing. It stays with the tab, and out of the address line. */
function read(): string {
  if (typeof document === "undefined" || !document.querySelector('meta[name="penstock-serve"]')) return "";
  const given = /^#token=([0-9a-f]+)$/.exec(location.hash)?.[1];
  if (given) {
    sessionStorage.setItem("token", given);
    history.replaceState(null, "", location.pathname);
  }
  return given ?? sessionStorage.getItem("token") ?? "";
}

/** Empty: nobody but the page itself answers. */
export const token = read();

/** Whether `penstock serve` gave the page, with or without its token. */
export const served = typeof document !== "undefined" && document.querySelector('meta[name="penstock-serve"]') !== null;
