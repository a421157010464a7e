//go:build browser

package browser_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/chromedp/chromedp"

	"github.com/sortie-dev/sortie/local/proof/localstack/cache"
	"github.com/sortie-dev/sortie/local/proof/localstack/components"
	"github.com/sortie-dev/sortie/local/proof/localstack/step"
	"github.com/sortie-dev/sortie/shared/base/clock"
)

// axe returns the text of axe-core in the version of package-lock.json. It is installed once, in
// the user's cache.
func axe(ctx context.Context) (string, error) {
	caches, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("cannot find the cache: %w", err)
	}
	texts := map[string][]byte{}
	var digested []byte
	for _, name := range []string{"package.json", "package-lock.json"} {
		if texts[name], err = os.ReadFile(name); err != nil {
			return "", fmt.Errorf("cannot read a lock file: %w", err)
		}
		digested = append(digested, texts[name]...)
	}
	store := cache.Cache{
		Dir: filepath.Join(caches, "sortie"), Clock: clock.System{},
		Say: func(format string, args ...any) { fmt.Printf(format+"\n", args...) },
	}
	dir, err := store.Part(ctx, "browser", components.Digest(digested), func(dir string) error {
		for name, text := range texts {
			if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
				return fmt.Errorf("cannot copy a lock file: %w", err)
			}
		}
		var output bytes.Buffer
		err := step.Run(ctx, "install axe-core with npm", step.Program{
			Path: "npm", Dir: dir, Env: os.Environ(), Output: &output,
			Args: []string{"ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"},
		})
		if err != nil {
			return fmt.Errorf("%w\n%s", err, output.Bytes())
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(filepath.Join(dir, "node_modules", "axe-core", "axe.min.js"))
	return string(text), err
}

// finding is a rule of axe that a page breaks.
type finding struct {
	ID, Impact, Help string
	Nodes            []struct {
		HTML           string
		Target         []any
		FailureSummary string
	}
}

func (f finding) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s (%s): %s, %d elements", f.ID, f.Impact, f.Help, len(f.Nodes))
	for _, n := range f.Nodes[:min(3, len(f.Nodes))] {
		fmt.Fprintf(&text, "\n  %v: %.200s\n    %s", n.Target, n.HTML, strings.ReplaceAll(n.FailureSummary, "\n", "\n    "))
	}
	return text.String()
}

// serious reports whether a finding fails the test.
func (f finding) serious() bool { return f.Impact == "serious" || f.Impact == "critical" }

// colours are the rules that depend on the colour scheme.
const colours = `, runOnly: ["color-contrast", "link-in-text-block"]`

// check runs axe on the page as it is, with further options.
func (b *tab) check(where, options string) {
	b.t.Helper()
	if value[bool](b, `typeof axe === "undefined"`) {
		value[bool](b, tools.axe+"; true")
	}
	text := run(b, chromedp.Evaluate[string](`axe.run(document, {resultTypes: ["violations"]`+options+`}).then(r => JSON.stringify(r.violations))`, chromedp.EvalAwaitPromise))
	var found []finding
	if err := json.Unmarshal([]byte(text), &found); err != nil {
		b.t.Fatal(err)
	}
	for _, f := range found {
		if f.serious() {
			b.t.Errorf("%s: axe: %s", where, f)
		} else {
			b.t.Logf("%s: axe: %s", where, f)
		}
	}
}
