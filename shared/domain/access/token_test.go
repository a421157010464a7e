package access_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/access"
)

func TestParseTexts(t *testing.T) {
	t.Parallel()
	const one, two = "one-0123456789ab", "two-0123456789ab"
	for _, row := range []struct {
		value string
		want  int
		fails string
	}{
		{"", 0, ""},
		{"  ", 0, ""},
		{one, 1, ""},
		{one + ", " + two, 2, ""},
		{one + ",," + two, 0, "token 2: empty"},
		{one + ",", 0, "token 2: empty"},
		{"one two three four", 0, "invalid character"},
		{"önetwothreefoursix", 0, "invalid character"},
		{one[1:], 0, "token 1: token of 15 characters, want at least 16"},
		{one + ",x", 0, "token 2: token of 1 characters"},
	} {
		texts, err := access.ParseTexts(row.value)
		if len(texts) != row.want || (err != nil) != (row.fails != "") || err != nil && !strings.Contains(err.Error(), row.fails) {
			t.Errorf("%q: got %d tokens, %v, want %d and the error %q", row.value, len(texts), err, row.want, row.fails)
		}
		if err != nil && (strings.Contains(err.Error(), "one") || strings.Contains(err.Error(), "x\"")) {
			t.Errorf("got a token in the error: %v, want it masked", err)
		}
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	tokens := access.OfTexts([]string{"first", "second"}, "t", "p")
	for text, want := range map[string]string{"first": "auth-token-1", "second": "auth-token-2", "": "", "firs": "", "firstt": "", access.Digest("first"): ""} {
		if found, ok := access.Find(tokens, text); ok != (want != "") || found.Name != want {
			t.Errorf("%q: got %q, %v, want %q", text, found.Name, ok, want)
		}
	}
	if found, ok := access.Find(nil, ""); ok {
		t.Errorf("no records: got %+v, want none", found)
	}
}

func TestExpiry(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	token := access.Token{ExpiresAt: at}
	if token.Expired(at.Add(-time.Nanosecond)) || !token.Expired(at) || (access.Token{}).Expired(at) {
		t.Error("got another expiry, want invalid from ExpiresAt on, and never without one")
	}
}

func TestNewTokensAreAccepted(t *testing.T) {
	t.Parallel()
	text, err := access.New(bytes.NewReader(make([]byte, 32)))
	if err != nil || access.CheckText(text) != nil || !strings.HasPrefix(text, "sortie_") {
		t.Errorf("got %q, %v, want a token that CheckText accepts", text, err)
	}
	if _, err := access.New(bytes.NewReader(make([]byte, 31))); err == nil {
		t.Error("got no error for too few random bytes")
	}
}

func TestAddAndRevoke(t *testing.T) {
	t.Parallel()
	one := access.Full("one", "text of one", "t", "p")
	tokens, err := access.Add(nil, one)
	if err != nil {
		t.Fatal(err)
	}
	for name, wrong := range map[string]access.Token{
		"the same name":  access.Full("one", "other text", "t", "p"),
		"the same token": access.Full("two", "text of one", "t", "p"),
		"unknown scope":  {Name: "two", SHA256: access.Digest("x"), Tenant: "t", Project: "p", Scopes: []access.Scope{"runs"}},
		"no scope":       {Name: "two", SHA256: access.Digest("x"), Tenant: "t", Project: "p"},
		"no tenant":      access.Full("two", "x", "", "p"),
		"tenant a/b":     access.Full("two", "x", "a/b", "p"),
		"project a#b":    access.Full("two", "x", "t", "a#b"),
		"name A":         access.Full("A", "x", "t", "p"),
		"no digest":      {Name: "two", Tenant: "t", Project: "p", Scopes: access.Scopes()},
	} {
		if after, err := access.Add(tokens, wrong); err == nil {
			t.Errorf("%s: got %+v, want an error", name, after)
		}
	}
	if _, err := access.Revoke(tokens, "two"); !errors.Is(err, access.ErrUnknown) {
		t.Errorf("unknown name: got %v, want ErrUnknown", err)
	}
	if left, err := access.Revoke(tokens, "one"); err != nil || len(left) != 0 || left == nil || len(tokens) != 1 {
		t.Errorf("got %v, %v, want an empty list and the old one unchanged", left, err)
	}
}
