package stack_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/suite/scripts"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/local/twin/stack"
	"github.com/sortie-dev/sortie/shared/adapter/keyfile"
	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// TestStreamHasTheEventsOfAKilledStack kills the stack during a run. The tenant's stream has
// each event of the run once, in order, with valid signatures and checkpoints.
func TestStreamHasTheEventsOfAKilledStack(t *testing.T) {
	t.Parallel()
	hold, data := scripts.Pipe(t), t.TempDir()
	given := served{Data: data, Play: "wait:" + hold + " success"}
	first := spawn(t, given)
	task := first.post(contract.ExportOptions{})
	first.Await(task, func(s contract.Status) bool { return s.State == "Running" })
	first.kill(syscall.SIGKILL)
	again := spawn(t, given)
	scripts.Release(t, hold)
	again.End(task)
	document := again.Call("GET", "/.well-known/jwks.json", "").Body
	want := again.Events(task)
	keys, err := events.ParseKeys(document)
	if err != nil {
		t.Fatal(err)
	}
	again.kill(syscall.SIGTERM)
	streams := streamsOf(t, data, keys)
	var got []int
	for _, e := range streams["default"] {
		if e.Job == nil || e.Job.ID != task {
			continue
		}
		if e.Job.Seq > 0 {
			got = append(got, e.Job.Seq)
		}
		if e.EventType == "job.accepted" && (e.Actor.Subject != "localhost" || len(e.Actor.Scopes) == 0 || e.Job.PayloadDigest == "") {
			t.Errorf("got actor %+v and digest %q, want the client and the digest of its request", e.Actor, e.Job.PayloadDigest)
		}
	}
	// A stop may come before the last events are in the stream. The next start relays them.
	if len(got) > len(want) || !slices.Equal(got, seqs(want)[:len(got)]) || len(got) == 0 {
		t.Errorf("got events %v of the run, want %v", got, seqs(want))
	}
}

// TestExportIsInTheStream follows the stream of a running stack until an export has its output.
func TestExportIsInTheStream(t *testing.T) {
	t.Parallel()
	g := start(t, served{})
	task := g.post(contract.ExportOptions{})
	stream := port.EventStream("default")
	var types []string
	var last events.Envelope
	for after := int64(0); last.EventType != "export.completed"; {
		if err := g.stack.Feed().Wait(t.Context(), stream, after); err != nil {
			t.Fatalf("got %v after the events %v, want export.completed", err, types)
		}
		records, err := g.stack.Feed().Read(t.Context(), stream, after, 1)
		if err != nil {
			t.Fatal(err)
		}
		if last, _, err = events.Unverified(records[0].Data); err != nil {
			t.Fatal(err)
		}
		types, after = append(types, string(last.EventType)), records[0].Position
	}
	if last.Job.ID != task || len(last.Job.Artifacts) != 1 || last.Job.Artifacts[0].URI != g.stack.Addresses().URL+"/download/"+task {
		t.Errorf("got %+v, want the artifact of %s", last.Job, task)
	}
	if types[0] != "job.accepted" || types[len(types)-2] != "job.completed" {
		t.Errorf("got events %v, want job.accepted first and job.completed before export.completed", types)
	}
	body, artifact := g.Call("GET", "/download/"+task, "").Body, last.Job.Artifacts[0]
	if want := fmt.Sprintf("sha256:%x", sha256.Sum256(body)); int64(len(body)) != artifact.Size || artifact.Digest != want {
		t.Errorf("got an artifact of %d bytes with digest %q, want %d bytes with %s", artifact.Size, artifact.Digest, len(body), want)
	}
}

func seqs(all []contract.TaskEvent) (numbers []int) {
	for _, e := range all {
		numbers = append(numbers, e.Seq)
	}
	return numbers
}

// streamsOf reads and verifies the streams of a data folder.
func streamsOf(t *testing.T, data string, keys events.Keys) map[string][]events.Envelope {
	t.Helper()
	db, err := sqlite.Open(t.Context(), filepath.Join(data, stack.RecordsFile))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // it was read
	feed, err := sqlite.NewFeed(t.Context(), db, sqlite.FeedConfig{Clock: clock.System{}, Retention: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	streams, _, err := feed.Streams(t.Context(), port.EventStreams, "", 100)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := keyfile.OpenEvents(filepath.Join(data, stack.EventKeysFile))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]events.Envelope{}
	for _, stream := range streams {
		records, err := feed.Read(t.Context(), stream, 0, 10_000)
		if err != nil {
			t.Fatal(err)
		}
		marks, err := feed.Marks(t.Context(), stream, 0, 10_000)
		if err != nil {
			t.Fatal(err)
		}
		var file strings.Builder
		for _, r := range records {
			signed, err := events.Signed(t.Context(), r.Data, signer.Signing)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&file, "%s\n", signed)
			for _, m := range marks {
				if m.Position == r.Position {
					line, _ := json.Marshal(events.CheckpointLine{Checkpoint: string(m.Data)}) //nolint:errchkjson // text
					fmt.Fprintf(&file, "%s\n", line)
				}
			}
			e, _, err := keys.Open(t.Context(), signed)
			if err != nil {
				t.Fatal(err)
			}
			found[e.TenantID] = append(found[e.TenantID], e)
		}
		if proof, err := events.Verify(t.Context(), strings.NewReader(file.String()), keys); err != nil || proof.From != 0 {
			t.Errorf("%s: got proof %+v, %v", stream, proof, err)
		}
	}
	return found
}
