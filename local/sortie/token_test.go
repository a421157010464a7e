package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// guarded starts a server with AUTH_TOKEN in a folder. It returns the server's URL and the file
// with the folder's own token.
func guarded(t *testing.T, dir string) (url, tokenFile string) {
	t.Helper()
	s := startWith(t, dir, []string{"AUTH_TOKEN=token-of-the-test"}, "dev", "--json", "--addr", "127.0.0.1:0")
	var at struct{ URL, TokenFile string }
	if err := json.Unmarshal([]byte(s.stdout.next(t, "{")), &at); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(at.TokenFile); err != nil || info.Mode().Perm() != 0o600 || filepath.Dir(at.TokenFile) != filepath.Join(dir, ".sortie") {
		t.Errorf("got the token file %q, %v, want one with mode 0600 in the data folder", at.TokenFile, err)
	}
	return at.URL, at.TokenFile
}

func TestClientFindsTheTokenOfItsFolder(t *testing.T) {
	t.Parallel()
	own, foreign := t.TempDir(), t.TempDir()
	url, tokenFile := guarded(t, own)
	for _, address := range []string{url, strings.TrimPrefix(url, "http://"), strings.Replace(url, "127.0.0.1", "localhost", 1)} {
		if got := start(t, own, "runs", "--url", address); got.exit(t) != 0 {
			t.Errorf("%s in the server's folder: got %s, want the list", address, got.stderr)
		}
	}
	if got := start(t, foreign, "runs", "--url", url); got.exit(t) != 6 || !strings.Contains(got.stderr.String(), "SORTIE_TOKEN") {
		t.Errorf("in another folder: got %s, want exit code 6 and a hint at SORTIE_TOKEN", got.stderr)
	}
	text, err := os.ReadFile(tokenFile)
	if err != nil {
		t.Fatal(err)
	}
	if got := startWith(t, foreign, []string{"SORTIE_TOKEN=" + string(text)}, "runs", "--url", url); got.exit(t) != 0 {
		t.Errorf("with the token of the file: got %s, want the list", got.stderr)
	}
	if got := startWith(t, own, []string{"SORTIE_TOKEN=another-token-of-16"}, "runs", "--url", url); got.exit(t) != 6 {
		t.Errorf("with a wrong SORTIE_TOKEN: got %s, want exit code 6", got.stderr)
	}
}

// TestClientSendsTheTokenToItsServerOnly calls the server of another folder. It must not
// receive the token of this one.
func TestClientSendsTheTokenToItsServerOnly(t *testing.T) {
	t.Parallel()
	own, foreign := t.TempDir(), t.TempDir()
	guarded(t, own)
	url, _ := guarded(t, foreign)
	got := start(t, own, "runs", "--url", url)
	if got.exit(t) != 6 || !strings.Contains(got.stderr.String(), "missing token") {
		t.Errorf("got %s, want a call without a token", got.stderr)
	}
}

func TestTokenOfARunningServerIsRevoked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, url := dev(t, dir, "--addr", "127.0.0.1:0")
	if got := startWith(t, t.TempDir(), nil, "runs", "--url", url); got.exit(t) != 0 {
		t.Errorf("without tokens: got %s, want the list", got.stderr)
	}
	added := start(t, dir, "tokens", "add", "ci", "--scope", "runs:read")
	if added.exit(t) != 0 {
		t.Fatal(added.stderr)
	}
	token := []string{"SORTIE_TOKEN=" + strings.TrimSpace(added.stdout.String())}
	if got := startWith(t, dir, token, "runs", "--url", url); got.exit(t) != 0 {
		t.Errorf("with a new token: got %s, want the list", got.stderr)
	}
	if got := startWith(t, dir, token, "cancel", "none", "--url", url); got.exit(t) != 6 || !strings.Contains(got.stderr.String(), "runs:write") {
		t.Errorf("with a missing scope: got %s, want exit code 6 and the scope", got.stderr)
	}
	if got := start(t, dir, "tokens", "revoke", "ci"); got.exit(t) != 0 {
		t.Error(got.stderr)
	}
	for range 40 { // starting a program takes part of the cache time
		if startWith(t, dir, token, "runs", "--url", url).exit(t) == 6 {
			return
		}
	}
	t.Error("got a revoked token accepted by 40 calls, want a refusal within a second")
}

// TestClientFindsServersFromEveryFolder starts two servers of one user in two folders.
func TestClientFindsServersFromEveryFolder(t *testing.T) {
	t.Parallel()
	first, second, elsewhere := t.TempDir(), t.TempDir(), t.TempDir()
	env := []string{"XDG_STATE_HOME=" + t.TempDir()}
	serve := func(dir string) (*sortie, string) {
		s := startWith(t, dir, append(env, "AUTH_TOKEN=token-of-the-test"), "dev", "--json", "--addr", "127.0.0.1:0")
		var at struct{ URL string }
		if err := json.Unmarshal([]byte(s.stdout.next(t, "{")), &at); err != nil {
			t.Fatal(err)
		}
		return s, at.URL
	}
	_, url := serve(first)
	check := func(name, dir string, code int, says string, args ...string) {
		t.Helper()
		got := startWith(t, dir, env, append([]string{"open", "--print"}, args...)...)
		if exit := got.exit(t); exit != code || !strings.Contains(got.stdout.String()+got.stderr.String(), says) {
			t.Errorf("%s: got %d, %s%s, want %d and %q", name, exit, got.stdout, got.stderr, code, says)
		}
	}
	check("the only server", elsewhere, 0, url+"/console/ticket")
	server, other := serve(second)
	check("one of two servers", elsewhere, 0, url+"/console/ticket", "--url", url)
	check("the server of the folder", second, 0, other+"/console/ticket")
	below := filepath.Join(second, "below")
	if err := os.Mkdir(below, 0o700); err != nil {
		t.Fatal(err)
	}
	check("the server of the folder above", below, 0, other+"/console/ticket")
	check("two servers", elsewhere, 2, other+"  "+filepath.Join(second, ".sortie"))
	server.signal(t, os.Interrupt)
	server.exit(t)
	check("the server that remains", elsewhere, 0, url+"/console/ticket")
	if text, err := os.ReadFile(filepath.Join(first, ".sortie", ".gitignore")); err != nil || string(text) != "*\n" {
		t.Errorf("got %q, %v, want a data folder that git ignores", text, err)
	}
}
