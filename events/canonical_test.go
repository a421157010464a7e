package events_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"

	"github.com/gowebpki/jcs"
	"pgregory.net/rapid"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/events/eventtype"
)

// canonical is events.Canonical implemented only with the rules of RFC 8785.
func canonical(payload []byte) ([]byte, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(payload, &fields); err != nil {
		return nil, err
	}
	delete(fields, "notifier")
	rest, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	return jcs.Transform(rest)
}

func wantCanonical(t interface {
	Helper()
	Fatalf(format string, args ...any)
}, text []byte,
) {
	t.Helper()
	want, wantErr := canonical(text)
	got, err := events.Canonical(text)
	if (err == nil) != (wantErr == nil) || err == nil && !bytes.Equal(got, want) {
		t.Fatalf("canonical form of %q: got %q, %v, want %q, %v", text, got, err, want, wantErr)
	}
	want, wantErr = jcs.Transform(text)
	sum := sha256.Sum256(want)
	digest, err := events.Digest(text)
	if (err == nil) != (wantErr == nil) || err == nil && digest != "sha256:"+hex.EncodeToString(sum[:]) {
		t.Fatalf("digest of %q: got %s, %v, want that of %q, %v", text, digest, err, want, wantErr)
	}
}

// TestCanonicalForm compares canonical forms of documents, most of them valid, with those of an
// implementation of RFC 8785.
func TestCanonicalForm(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		``, `null`, `1`, `"a"`, `[]`, `{}`, `{"a":1}x`, `{"a":1,}`, `{"a":1 }`, ` {"a":1}`, `{"b":1,"a":2}`, `{"a":1,"a":2}`, `{"notifier":1}`, `{"a":{"notifier":1},"notifier":{"a":2},"b":3}`,
		`{"notifier":1,"notifier":2}`, `{"a!":1,"a":2,"a\"":3,"a#":4}`, `{"ä":1,"z":2}`, `{"":1}`, `[{"b":[true,false,null],"a":{}}]`,
		`{"a":-0}`, `{"a":0}`, `{"a":-1}`, `{"a":01}`, `{"a":1.0}`, `{"a":12.345}`, `{"a":-0.5}`, `{"a":-0.0}`, `{"a":0.000001}`, `{"a":0.0000001}`, `{"a":0.00000123}`, `{"a":0.10}`, `{"a":1.}`, `{"a":.5}`, `{"a":00.5}`, `{"a":1.5e3}`, `{"a":1.2.3}`, `{"a":0.30000000000000004}`, `{"a":123456789.123456}`, `{"a":1234567890.123456}`, `{"a":1e2}`, `{"a":999999999999999}`, `{"a":9999999999999999}`, `{"a":9007199254740993}`, `{"a":--1}`, `{"a":-}`, `{"a":1-2}`,
		`{"a":"\u003c\u003e\u0026\u003C"}`, `{"a":"\/\"\\\b\f\n\r\t\u000a\u00e9\ud83d\ude00"}`, "{\"a\":\"\xff\"}", "{\"a\":\"\x7f\u2028\ue000\"}", `{"a":"\ud800"}`, "{\"a\":\"\t\"}", `{"a":"\x"}`, `{"a":"\`, `{"a":"`, `{"a"`, `{"a":tru}`, `{"a":truex}`,
		strings.Repeat("[", 40) + strings.Repeat("]", 40), strings.Repeat(`{"a":`, 20) + "1" + strings.Repeat("}", 20),
	} {
		wantCanonical(t, []byte(text))
	}
	parts := []string{`{`, `}`, `[`, `]`, `,`, `:`, `"a"`, `"b"`, `"notifier"`, `"ä"`, `"a\n"`, `"\u003c"`, `1`, `-1`, `0`, `2.5`, `true`, `null`, ` `, `{"a":1,"b":[2,"c"]}`, `"c":3`, `"b":{}`}
	value := rapid.Deferred(func() *rapid.Generator[string] { return document(3) })
	rapid.Check(t, func(t *rapid.T) {
		text := value.Draw(t, "document")
		if rapid.Bool().Draw(t, "mixed") {
			text = strings.Join(rapid.SliceOf(rapid.SampledFrom(parts)).Draw(t, "parts"), "")
		}
		wantCanonical(t, []byte(text))
	})
}

// document generates JSON objects with a limited depth.
func document(levels int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		var members []string
		for range rapid.IntRange(0, 5).Draw(t, "members") {
			name, _ := json.Marshal(rapid.OneOf(rapid.SampledFrom([]string{"a", "b", "ab", "a!", "notifier", "ä", "€", "\U0001f600", `"`}), rapid.String()).Draw(t, "name"))
			var value any
			switch rapid.IntRange(0, 5).Draw(t, "kind") {
			case 0:
				value = rapid.String().Draw(t, "text")
			case 1:
				value = rapid.Int64().Draw(t, "integer")
			case 2:
				value = rapid.OneOf(rapid.Float64(), rapid.Map(rapid.Int64Range(-1e15, 1e15), func(n int64) float64 { return float64(n) / 1e9 })).Draw(t, "number")
			case 3:
				value = []any{rapid.Bool().Draw(t, "bool"), nil, rapid.StringN(0, 5, 20).Draw(t, "text")}
			default:
				if levels == 0 {
					continue
				}
				value = json.RawMessage(document(levels-1).Draw(t, "object"))
			}
			text, err := json.Marshal(value)
			if err != nil {
				continue
			}
			members = append(members, string(name)+":"+string(text))
		}
		return "{" + strings.Join(members, ",") + "}"
	})
}

// TestEventsArePlain checks that no event needs the slow form, which makes hundreds of
// allocations.
func TestEventsArePlain(t *testing.T) { //nolint:paralleltest // it counts what the process allocates
	for _, info := range eventtype.All() {
		payload, err := json.Marshal(sample(info.Type, 1))
		if err != nil {
			t.Fatal(err)
		}
		if got := testing.AllocsPerRun(10, func() { _, _ = events.Canonical(payload) }); got > 10 {
			t.Errorf("%s: got %v allocations for %s, want at most 10", info.Type, got, payload)
		}
	}
}

func BenchmarkTreeAdd(b *testing.B) {
	payload, err := json.Marshal(sample(eventtype.Started, 1))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	var tree events.Tree
	for b.Loop() {
		if tree, err = tree.Add(payload); err != nil {
			b.Fatal(err)
		}
	}
}
