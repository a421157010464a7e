//go:build browser

package browser_test

import "testing"

// TestLogIsSearched searches a log, opens a found line with its neighbours, and checks both pages
// in each look.
func TestLogIsSearched(t *testing.T) {
	w := shared(t)
	id, err := w.shell(`for i in $(seq 2000); do echo "line $i."; done; printf '\033[31mERROR\033[0m no disk\n'`, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.await(id, "Completed"); err != nil {
		t.Fatal(err)
	}
	b := signedIn(t, w.server)
	b.open("runs/" + id)
	b.awaits("the end of the log", `(e => e.scrollTop > 0 && e.scrollTop + e.clientHeight > e.scrollHeight - 5)(document.querySelector(".log"))`)
	b.has("2001 lines", "1 error", "Lines 1702 to 2001")
	b.fill(`form[aria-label="Search the log"] input[name=q]`, "LINE 777.")
	b.press(keys("\r"))
	b.has("1 of 2001 lines match")
	b.looks("the found lines")
	b.press(click(`//ol[contains(@class, "log")]/li[1]/a`))
	b.has("line 776.", "line 778.")
	b.awaits("the addressed line", `(r => r && r.top >= 0 && r.bottom <= innerHeight)(document.querySelector("#L777:target")?.getBoundingClientRect())`)
	b.looks("the line in its place")
}
