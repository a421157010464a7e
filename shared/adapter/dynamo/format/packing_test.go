package format

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// TestDictionaryNeverChanges: stored items need the dictionary. A better one
// requires another file with another first byte.
func TestDictionaryNeverChanges(t *testing.T) {
	t.Parallel()
	sum := sha256.Sum256(dictionary1)
	if hex.EncodeToString(sum[:]) != "5164c63067474edbadb3e98ca9cc07b4a3cec8d809d6f9761584f08e2448afee" {
		t.Error("got another digest: stored items would become unreadable")
	}
}

func TestDictionary2NeverChanges(t *testing.T) {
	t.Parallel()
	sum := sha256.Sum256(dictionary2)
	const want = "7885b8363956cd955377fca658b1d2e6e3716c2033caf3407693f1760ea5febe"
	if got := hex.EncodeToString(sum[:]); got != want {
		t.Errorf("got digest %s, want %s: stored items would become unreadable", got, want)
	}
}

func TestDictionary3NeverChanges(t *testing.T) {
	t.Parallel()
	sum := sha256.Sum256(dictionary3)
	const want = "60dd5b379f0ca940b652807fbc02f6cf5c805f7d4aa8c7324d347602bc0bd9c7"
	if got := hex.EncodeToString(sum[:]); got != want {
		t.Errorf("got digest %s, want %s: stored items would become unreadable", got, want)
	}
}

func TestDictionary4NeverChanges(t *testing.T) {
	t.Parallel()
	sum := sha256.Sum256(dictionary4)
	const want = "55f8ac27483038f17d9697a66713dc256e63ef1a9d8bbbdbf6e5faf6ff0cfab8"
	if got := hex.EncodeToString(sum[:]); got != want {
		t.Errorf("got digest %s, want %s: stored items would become unreadable", got, want)
	}
}

var sampleRun, sampleEvent = func() (run.Run, run.Event) {
	at := time.Date(2026, 3, 4, 5, 6, 7, 890_123_456, time.UTC)
	d := run.New(run.Run{Tenant: "acme", ID: "export_mods_1", TaskID: "export_mods_1", Work: spec.Work{Kind: "export", Format: "mods"}}, at)
	return d.Run, d.Events[0]
}()

// TestItemsOfEarlierFormatsAreReadable reads bytes that earlier versions wrote.
func TestItemsOfEarlierFormatsAreReadable(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ run, event string }{
		"first release": {
			"AaTXOw7CQAyE4Z5j0C+axXlAzkGFRIGidAEBUQTN3p2Odcw44tG7mOr7ZZWeY3vqvO642THVIbn5NjW6M+ex73MK5nCfis4Vp3Zbsd+cZjQzjV1/wfyF9dewC82uxlZLm/+Sl7SYShuJtJCAYoeyQdWgXm22iGspymrPCJ47JuriF1ayJ3DAwIci6LVi1v5HRZDuIcOlHevr7R6GuEyHlBbPAAAA//8=",
			"AgGctz01kvenwbLG9BC0emEYmYsBuqzqwKLzKAMgAAD//w==",
		},
		"dictionary 2": {
			"A6TXOw7CQAyE4bvQL5rFeUDOQYVEgaJ0AQFRBM3enY51zDgC0ruY6vtllZ9Te+689rjpMeUhyfk1N7o1l7Hvcw7mgJ+qziWnflu1P6xmPDORXYPBDIY12NALTa8GV2ubX5S3tphqG4m2kIBij7JB1aBeb3eIGynK6sAYnjsm8uIfWrIpcNDAlyrotWLWLuMiSPeU4dqO9e3+CENcpWNKrwAAAP//",
			"BAGctz01kvenwbLG9BC0emEYmYsBuqzqwKLvqAMgAAD//w==",
		},
		"dictionary 3": {
			"BaTYMQoCMRCF4bvYR946uxvNOawECwn2ahBtcnfBxnF8EwPbbzHN/t8jStJTfj+AUEZdRQ2iXZO7Lae/vFtWfQPFUaIUWYB+2GHSMFxcTsA4geXEKAKtiLZDw0HWGv6vNUjAuMeUMCfE9XaHYSPjNB+YKK2PCSLoCp9pyScicKKAzr9eXyvm2mU5CHJ+Srnke7zeHqEMq3qs9RUAAP//",
			"BgGctz01kvenwbLG9BC0emEYmYsBuqzqwKLvvCIgAAD//w==",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var r run.Run
			if err := Unpack(decoded(t, row.run), &r); err != nil {
				t.Fatal(err)
			}
			r.Work.Options = nil
			if diff := cmp.Diff(sampleRun, r); diff != "" {
				t.Error(diff)
			}
			e, err := UnpackEvent(decoded(t, row.event))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(sampleEvent, e); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func decoded(t *testing.T, text string) []byte {
	t.Helper()
	packed, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return packed
}

func TestEventsRoundTrip(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(e *run.Event){
		"typical":                         func(*run.Event) {},
		"id with a space":                 func(e *run.Event) { e.ID = "event 1" },
		"id in lower case":                func(e *run.Event) { e.ID = "01kjm6jm0026htxrnemc20wza6" },
		"no id":                           func(e *run.Event) { e.ID = "" },
		"no time":                         func(e *run.Event) { e.At = time.Time{} },
		"time in the far future":          func(e *run.Event) { e.At = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC) },
		"time before 1970":                func(e *run.Event) { e.At = time.Date(1901, 1, 1, 0, 0, 0, 1, time.UTC) },
		"time zone":                       func(e *run.Event) { e.At = e.At.In(time.FixedZone("", 3600)) },
		"message with special characters": func(e *run.Event) { e.Message = "<a & b> \"ü\" 漢字\x00" },
	} {
		want := sampleEvent
		change(&want)
		packed, err := PackEvent(want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := UnpackEvent(packed)
		if err != nil {
			t.Errorf("%s: got %v", name, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: got %s", name, diff)
		}
	}
}

func TestDamagedDataIsAnError(t *testing.T) {
	t.Parallel()
	packed, err := PackEvent(sampleEvent)
	if err != nil {
		t.Fatal(err)
	}
	for n := range packed {
		if e, err := UnpackEvent(packed[:n]); err == nil {
			t.Errorf("%d of %d bytes: got event %+v, want an error", n, len(packed), e)
		}
	}
	for _, bad := range [][]byte{nil, {0}, {9, 1, 2}, {packed1}, {packed2}, {packed3}, {packed4}, []byte("{"), make([]byte, eventHead+4)} {
		if err := Unpack(bad, new(run.Run)); err == nil {
			t.Errorf("%v: got a record, want an error", bad)
		}
	}
}

func FuzzUnpack(f *testing.F) {
	packed, err := PackEvent(sampleEvent)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(packed)
	f.Add([]byte{packed1})
	f.Fuzz(func(_ *testing.T, packed []byte) {
		_, _ = UnpackEvent(packed)
		_ = Unpack(packed, new(run.Run))
	})
}
