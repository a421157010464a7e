package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/coder/websocket"

	"github.com/sortie-dev/sortie/local/proof/localstack/prerequisites"
)

// longestMessage limits a message in bytes. The cases send shorter ones.
const longestMessage = 1 << 20

const (
	// suiteLock has the version of the suite. cases is the number of its cases that run.
	suiteLock = "autobahn.lock"
	cases     = 247
)

// wstest is a Python script that runs the suite. Its first argument is the folder of the
// packages.
const wstest = `import site, sys; site.addsitedir(sys.argv.pop(1)); from autobahntestsuite.wstest import run; run()`

// autobahn runs cases 1 to 7 and 10 of Autobahn|Testsuite against an echo server that uses the
// streams' WebSocket library. The suite needs Python 2.7.
func autobahn(ctx context.Context, k *kit) error {
	python, err := prerequisites.Host{Env: k.lookup, Environ: k.environ}.Python27(ctx)
	if err != nil {
		return missing{err}
	}
	packages, err := k.part(ctx, "autobahn", "", []string{suiteLock}, func(dir string) error {
		return k.exec(ctx, "install the suite", call{args: []string{
			python, "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--quiet", "--no-deps", "--require-hashes",
			"--target", dir, "--requirement", suiteLock,
		}, dir: dir})
	})
	if err != nil {
		return err
	}
	server := httptest.NewServer(http.HandlerFunc(echo))
	defer server.Close()
	report := filepath.Join(k.work, "autobahn")
	spec, err := json.Marshal(map[string]any{
		"outdir": report, "servers": []any{map[string]string{"agent": "echo", "url": strings.Replace(server.URL, "http", "ws", 1)}},
		"cases": []string{"1.*", "2.*", "3.*", "4.*", "5.*", "6.*", "7.*", "10.*"}, "exclude-cases": []string{}, "exclude-agent-cases": map[string]any{},
	})
	if err != nil {
		return fmt.Errorf("cannot write the list of cases: %w", err)
	}
	name := filepath.Join(k.work, "autobahn.json")
	if err := os.WriteFile(name, spec, 0o600); err != nil {
		return fmt.Errorf("cannot write the list of cases: %w", err)
	}
	err = k.exec(ctx, "run the cases", call{args: []string{python, "-c", wstest, packages, "-m", "fuzzingclient", "-s", name}, dir: k.work})
	if err != nil {
		return err
	}
	return verdicts(filepath.Join(report, "index.json"))
}

// echo sends each message back.
func echo(w http.ResponseWriter, r *http.Request) {
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return // Accept has answered the handshake
	}
	defer func() { _ = conn.CloseNow() }() // it may be closed
	conn.SetReadLimit(longestMessage)
	for {
		kind, message, err := conn.Read(r.Context())
		if err != nil {
			return
		}
		// The library leaves the UTF-8 check of text messages to its callers.
		if kind == websocket.MessageText && !utf8.Valid(message) {
			_ = conn.Close(websocket.StatusInvalidFramePayloadData, "want UTF-8") // the client may have disconnected
			return
		}
		if err := conn.Write(r.Context(), kind, message); err != nil {
			return
		}
	}
}

// verdicts reads the suite's report and returns an error for each failed case.
func verdicts(name string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return fmt.Errorf("cannot read the report: %w", err)
	}
	var report map[string]map[string]struct{ Behavior, BehaviorClose string }
	if err := json.Unmarshal(text, &report); err != nil {
		return fmt.Errorf("cannot read the report: %w", err)
	}
	passed := []string{"OK", "NON-STRICT", "INFORMATIONAL"}
	var failed []error
	for id, got := range report["echo"] {
		// The library does not check that the reason of a close is UTF-8.
		if id != "7.5.1" && (!slices.Contains(passed, got.Behavior) || !slices.Contains(passed, got.BehaviorClose)) {
			failed = append(failed, fmt.Errorf("case %s: got %s, and %s at the close, want one of %v", id, got.Behavior, got.BehaviorClose, passed))
		}
	}
	if n := len(report["echo"]); n != cases {
		failed = append(failed, fmt.Errorf("got the verdicts of %d cases, want %d", n, cases))
	}
	return errors.Join(failed...)
}
