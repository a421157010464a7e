package events_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/tlog"
	"pgregory.net/rapid"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/events/eventtype"
)

func key(t testing.TB, seed byte) events.Key {
	t.Helper()
	k, err := events.NewKey(bytes.Repeat([]byte{seed}, 32))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func keysOf(all ...events.Key) events.Keys {
	found := events.Keys{}
	for _, k := range all {
		found[k.ID()] = k
	}
	return found
}

func payload(t testing.TB, n int) []byte {
	t.Helper()
	document, err := json.Marshal(sample(eventtype.Queued, n))
	if err != nil {
		t.Fatal(err)
	}
	return document
}

// TestSignedEventIsOpened opens an event with a set of public keys, before and after a
// rotation.
func TestSignedEventIsOpened(t *testing.T) {
	t.Parallel()
	old, next := key(t, 1), key(t, 2)
	document, err := json.Marshal(keysOf(old, next))
	if err != nil {
		t.Fatal(err)
	}
	keys, err := events.ParseKeys(document)
	if err != nil || len(keys) != 2 || !keys[old.ID()].Equal(old) {
		t.Fatalf("got keys %v, %v, want both", keys, err)
	}
	for _, k := range []events.Key{old, next} {
		want := payload(t, 1)
		signed, err := events.Sign(t.Context(), want, k)
		if err != nil {
			t.Fatal(err)
		}
		e, got, err := keys.Open(t.Context(), signed)
		if err != nil || !bytes.Equal(got, want) || e.EventType != eventtype.Queued {
			t.Errorf("got %s, %v, want the signed bytes", got, err)
		}
	}
	if _, err := events.Sign(t.Context(), nil, keys[old.ID()]); err == nil {
		t.Error("got a signature by a public key, want an error")
	}
	if _, err := (events.Checkpoint{Origin: "o"}).Sign(keys[old.ID()]); err == nil {
		t.Error("got a checkpoint by a public key, want an error")
	}
}

// TestForgedEventIsRefused runs a table of attacks.
func TestForgedEventIsRefused(t *testing.T) {
	t.Parallel()
	own, foreign := key(t, 1), key(t, 2)
	keys := keysOf(own)
	signed, err := events.Sign(t.Context(), payload(t, 1), own)
	if err != nil {
		t.Fatal(err)
	}
	byForeign, err := events.Sign(t.Context(), payload(t, 1), foreign)
	if err != nil {
		t.Fatal(err)
	}
	change := func(document []byte, do func(f map[string]any)) string {
		var fields map[string]any
		if err := json.Unmarshal(document, &fields); err != nil {
			t.Fatal(err)
		}
		do(fields)
		text, _ := json.Marshal(fields)
		return string(text)
	}
	signature := func(f map[string]any) map[string]any { return f["signatures"].([]any)[0].(map[string]any) }
	for name, document := range map[string]string{
		"payload of another event": change(signed, func(f map[string]any) { f["payload"] = base64.StdEncoding.EncodeToString(payload(t, 2)) }),
		"payload with a space":     change(signed, func(f map[string]any) { f["payload"] = base64.StdEncoding.EncodeToString(append(payload(t, 1), ' ')) }),
		"another payload type":     change(signed, func(f map[string]any) { f["payloadType"] = "application/json" }),
		"no signatures":            change(signed, func(f map[string]any) { f["signatures"] = []any{} }),
		"null signatures":          change(signed, func(f map[string]any) { f["signatures"] = nil }),
		"empty signature":          change(signed, func(f map[string]any) { signature(f)["sig"] = "" }),
		"signature of zeros":       change(signed, func(f map[string]any) { signature(f)["sig"] = base64.StdEncoding.EncodeToString(make([]byte, 64)) }),
		"no key id":                change(signed, func(f map[string]any) { delete(signature(f), "keyid") }),
		"foreign key":              string(byForeign),
		"foreign key, known id":    change(byForeign, func(f map[string]any) { signature(f)["keyid"] = own.ID() }),
		"known key, foreign id":    change(signed, func(f map[string]any) { signature(f)["keyid"] = foreign.ID() }),
		"payload that is no event": func() string { s, _ := events.Sign(t.Context(), []byte("{}"), own); return string(s) }(),
		"event without a wrapper":  string(payload(t, 1)),
		"no JSON":                  "event",
	} {
		if e, _, err := keys.Open(t.Context(), []byte(document)); err == nil {
			t.Errorf("%s: got event %s, want an error", name, e.EventID)
		}
	}
}

func TestMalformedKeysAreRefused(t *testing.T) {
	t.Parallel()
	good, err := json.Marshal(keysOf(key(t, 1)))
	if err != nil {
		t.Fatal(err)
	}
	for name, document := range map[string]string{
		"no JSON":        "{",
		"no keys":        `{"keys": []}`,
		"key of tokens":  `{"keys": [{"kty": "EC", "crv": "P-256", "x": "AA", "kid": "a"}]}`,
		"short key":      `{"keys": [{"kty": "OKP", "crv": "Ed25519", "x": "AAAA"}]}`,
		"foreign key id": strings.Replace(string(good), key(t, 1).ID(), key(t, 2).ID(), 1),
	} {
		if _, err := events.ParseKeys([]byte(document)); err == nil {
			t.Errorf("%s: got keys, want an error", name)
		}
	}
	if _, err := events.NewKey(nil); err == nil {
		t.Error("got a key without a seed, want an error")
	}
}

// TestTreeIsThatOfTheLibrary compares roots with those of the log of Go's checksum
// database.
func TestTreeIsThatOfTheLibrary(t *testing.T) {
	t.Parallel()
	var hashes []tlog.Hash
	reader := tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		found := make([]tlog.Hash, len(indexes))
		for i, index := range indexes {
			found[i] = hashes[index]
		}
		return found, nil
	})
	var tree events.Tree
	for n := range int64(300) {
		want, err := tlog.TreeHash(n, reader)
		if err != nil || tree.Root() != want || tree.Size != n {
			t.Fatalf("got root %s of %d events, %v, want %s of %d", tree.Root(), tree.Size, err, want, n)
		}
		canonical, err := events.Canonical(payload(t, int(n)))
		if err != nil {
			t.Fatal(err)
		}
		more, err := tlog.StoredHashes(n, canonical, reader)
		if err != nil {
			t.Fatal(err)
		}
		hashes = append(hashes, more...)
		if tree, err = tree.Add(payload(t, int(n))); err != nil {
			t.Fatal(err)
		}
	}
}

// stream returns the lines of a file: a checkpoint before the events of each range, and
// one at the end.
func stream(t testing.TB, k events.Key, from int, counts ...int) (lines []string) {
	t.Helper()
	var tree events.Tree
	add := func(n int) []byte {
		document := payload(t, n)
		var err error
		if tree, err = tree.Add(document); err != nil {
			t.Fatal(err)
		}
		return document
	}
	checkpoint := func() {
		signed, err := events.Checkpoint{Origin: events.Origin("acme", "e1"), Tree: tree}.Sign(k)
		if err != nil {
			t.Fatal(err)
		}
		line, _ := json.Marshal(events.CheckpointLine{Checkpoint: signed})
		lines = append(lines, string(line))
	}
	for n := range from {
		add(n)
	}
	next := from
	for _, count := range counts {
		checkpoint()
		for range count {
			signed, err := events.Sign(t.Context(), add(next), k)
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, string(signed))
			next++
		}
	}
	checkpoint()
	return lines
}

func verify(lines []string, keys events.Keys) (events.Proof, error) {
	return events.Verify(context.Background(), strings.NewReader(strings.Join(lines, "\n")), keys)
}

func TestCompleteFileIsProved(t *testing.T) {
	t.Parallel()
	k := key(t, 1)
	keys := keysOf(k)
	lines := stream(t, k, 5, 3, 0, 6)
	for name, test := range map[string]struct {
		lines []string
		want  events.Proof
	}{
		"between checkpoints":          {lines, events.Proof{Origin: "sortie/acme/e1", Events: 9, From: 5, To: 14}},
		"events before and behind":     {append(slices.Clone(lines[1:]), lines[1]), events.Proof{Origin: "sortie/acme/e1", Events: 10, From: 8, To: 14, Outside: 4}},
		"from the start of the stream": {stream(t, k, 0, 4)[1:], events.Proof{Origin: "sortie/acme/e1", Events: 4, To: 4}},
		"no events":                    {lines[:1], events.Proof{Origin: "sortie/acme/e1", From: 5, To: 5}},
	} {
		if got, err := verify(test.lines, keys); err != nil || got != test.want {
			t.Errorf("%s: got %+v, %v, want %+v", name, got, err, test.want)
		}
	}
}

// TestChangedFileIsRefused changes complete files in every way that a line can be
// changed between two checkpoints.
func TestChangedFileIsRefused(t *testing.T) {
	t.Parallel()
	k := key(t, 1)
	keys := keysOf(k)
	rapid.Check(t, func(r *rapid.T) {
		from := rapid.IntRange(0, 9).Draw(r, "from")
		counts := rapid.SliceOfN(rapid.IntRange(2, 5), 1, 3).Draw(r, "counts")
		lines := stream(t, k, from, counts...)
		if _, err := verify(lines, keys); err != nil {
			r.Fatalf("got %v for a complete file", err)
		}
		// The first and the last line are checkpoints.
		at := rapid.SampledFrom(eventLines(lines)).Draw(r, "line")
		how := rapid.SampledFrom([]string{"remove", "repeat", "swap", "replace", "edit"}).Draw(r, "how")
		switch how {
		case "remove":
			lines = slices.Delete(lines, at, at+1)
		case "repeat":
			lines = slices.Insert(lines, at, lines[at])
		case "swap":
			other := rapid.SampledFrom(eventLines(lines)).Filter(func(n int) bool { return n != at }).Draw(r, "other")
			lines[at], lines[other] = lines[other], lines[at]
		case "replace":
			signed, err := events.Sign(context.Background(), payload(t, 99), k)
			if err != nil {
				r.Fatal(err)
			}
			lines[at] = string(signed)
		case "edit":
			lines[at] = strings.Replace(lines[at], `"payload":"e`, `"payload":"f`, 1)
		}
		if proof, err := verify(lines, keys); err == nil {
			r.Errorf("%s of line %d: got proof %+v, want an error", how, at, proof)
		}
	})
}

func eventLines(lines []string) (at []int) {
	for i, line := range lines {
		if !strings.Contains(line, `"checkpoint"`) {
			at = append(at, i)
		}
	}
	return at
}

func TestForgedCheckpointIsRefused(t *testing.T) {
	t.Parallel()
	k, foreign := key(t, 1), key(t, 2)
	keys := keysOf(k)
	lines := stream(t, k, 3, 4)
	last := len(lines) - 1
	of := func(line string) string {
		var c events.CheckpointLine
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatal(err)
		}
		return c.Checkpoint
	}
	for name, forged := range map[string]string{
		"by a foreign key": of(stream(t, foreign, 3, 4)[last]),
		"of another size":  strings.Replace(of(lines[last]), "\n7\n", "\n8\n", 1),
		"without a size":   "sortie/acme/e1\n",
		"of another epoch": func() string {
			signed, _ := events.Checkpoint{Origin: events.Origin("acme", "e2")}.Sign(k)
			return signed
		}(),
		"of an older size": of(lines[0]),
		"without subtrees": strings.ReplaceAll(of(lines[last]), "subtree", "other"),
	} {
		line, _ := json.Marshal(events.CheckpointLine{Checkpoint: forged})
		if proof, err := verify(append(slices.Clone(lines[:last]), string(line)), keys); err == nil {
			t.Errorf("%s: got proof %+v, want an error", name, proof)
		}
	}
	for name, lines := range map[string][]string{
		"no checkpoint": lines[1:last], "one checkpoint": lines[:last], "rubbish": {"{"}, "empty": {""},
		"a long line": {fmt.Sprintf(`{"payload": %q}`, strings.Repeat("a", 2<<20))},
	} {
		if proof, err := verify(lines, keys); err == nil {
			t.Errorf("%s: got proof %+v, want an error", name, proof)
		}
	}
}

func ExampleVerify() {
	k, _ := events.NewKey(bytes.Repeat([]byte{1}, 32))
	var tree events.Tree
	var file strings.Builder
	for _, name := range []string{"first", "second"} {
		event := []byte(`{"schemaVersion": "orch.event.v1", "tenantId": "acme", "eventId": "` + name + `"}`)
		signed, _ := events.Sign(context.Background(), event, k)
		tree, _ = tree.Add(event)
		fmt.Fprintf(&file, "%s\n", signed)
	}
	checkpoint, _ := events.Checkpoint{Origin: events.Origin("acme", "1"), Tree: tree}.Sign(k)
	line, _ := json.Marshal(events.CheckpointLine{Checkpoint: checkpoint})
	file.Write(line)

	proof, err := events.Verify(context.Background(), strings.NewReader(file.String()), events.Keys{k.ID(): k})
	fmt.Printf("%+v %v\n", proof, err)
	// Output: {Origin:sortie/acme/1 Events:2 From:0 To:2 Outside:0} <nil>
}
