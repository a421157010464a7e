package apitest

import (
	"bytes"
	"context"
	"crypto/md5" //nolint:gosec // what an object store's ETag is made of
	"encoding/hex"
	"encoding/json"
	"io"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/port"
)

// executions take everything and do nothing: a test does the steps itself.
type executions struct{}

func (executions) Start(context.Context, string, json.RawMessage) error   { return nil }
func (executions) Succeed(context.Context, string, json.RawMessage) error { return nil }
func (executions) Fail(context.Context, string, string, string) error     { return nil }
func (executions) Heartbeat(context.Context, string) error                { return nil }
func (executions) Stop(context.Context, string, string) error             { return nil }
func (executions) Describe(_ context.Context, name string) (port.Execution, error) {
	return port.Execution{Name: name, Status: port.ExecutionRunning}, nil
}

// machines run at once, and are gone when they are told to.
type machines struct {
	mu   sync.Mutex
	made map[string]port.LaunchSpec
	gone map[string]bool
	// wrote is what machines have written.
	wrote map[string]string
}

func newMachines() *machines {
	return &machines{made: map[string]port.LaunchSpec{}, gone: map[string]bool{}, wrote: map[string]string{}}
}

func (m *machines) env(t *testing.T, id string) map[string]string {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	spec, ok := m.made[id]
	if !ok {
		t.Fatalf("there is no machine %q", id)
	}
	return spec.Env
}

func (m *machines) end(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.gone[id] = true
}

// Logs implements port.MachineLogs.
func (m *machines) Logs(_ context.Context, id string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	text, ok := m.wrote[id]
	if !ok {
		return nil, port.ErrNotFound
	}
	return []byte(text), nil
}

func (m *machines) Launch(ctx context.Context, spec port.LaunchSpec) (port.Machine, error) {
	m.mu.Lock()
	m.made["machine-"+spec.Name] = spec
	m.mu.Unlock()
	return m.Inspect(ctx, "machine-"+spec.Name)
}

func (m *machines) Inspect(_ context.Context, id string) (port.Machine, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	spec, ok := m.made[id]
	if !ok {
		return port.Machine{}, port.ErrNotFound
	}
	machine := port.Machine{ID: id, Name: spec.Name, Owner: spec.Owner, Phase: port.MachineRunning}
	if m.gone[id] {
		machine.Phase, machine.Exit = port.MachineGone, &port.Exit{Code: 1}
	}
	return machine, nil
}

func (m *machines) Wait(ctx context.Context, id string, phase port.MachinePhase, _ time.Duration) (port.Machine, error) {
	if phase == port.MachineGone {
		m.end(id)
	}
	return m.Inspect(ctx, id)
}

func (m *machines) List(ctx context.Context) ([]port.Machine, error) {
	m.mu.Lock()
	ids := make([]string, 0, len(m.made))
	for id := range m.made {
		ids = append(ids, id)
	}
	m.mu.Unlock()
	var live []port.Machine
	for _, id := range ids {
		if machine, err := m.Inspect(ctx, id); err == nil {
			live = append(live, machine)
		}
	}
	return live, nil
}

func (m *machines) Stop(_ context.Context, id string, _ time.Duration) error { m.end(id); return nil }

func (m *machines) Destroy(_ context.Context, id string) error { m.end(id); return nil }

// Objects is an object store in memory.
type Objects struct {
	mu   sync.Mutex
	held map[port.Bucket]map[string]object
	// cut is after how many bytes a read breaks; negative for never.
	cut int64
}

type object struct {
	port.Object
	content string
}

func newObjects() *Objects {
	return &Objects{cut: -1, held: map[port.Bucket]map[string]object{port.Uploads: {}, port.Accepted: {}}}
}

// Put implements orchestrator.Outputs.
func (o *Objects) Put(_ context.Context, shelf port.Bucket, key, contentType string, content []byte) error {
	o.Lay(shelf, key, contentType, string(content))
	return nil
}

// Lay lays an object down.
func (o *Objects) Lay(shelf port.Bucket, key, contentType, content string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	sum := md5.Sum([]byte(content)) //nolint:gosec // as above
	o.held[shelf][key] = object{content: content, Object: port.Object{
		Key: key, Size: int64(len(content)), ETag: `"` + hex.EncodeToString(sum[:]) + `"`, ContentType: contentType, ModifiedAt: Began,
	}}
}

// BreakAfter lets every read break after n bytes.
func (o *Objects) BreakAfter(n int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.cut = n
}

// Clear removes everything.
func (o *Objects) Clear() {
	o.mu.Lock()
	defer o.mu.Unlock()
	clear(o.held[port.Uploads])
	clear(o.held[port.Accepted])
}

// Count tells how many objects a shelf has.
func (o *Objects) Count(shelf port.Bucket) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.held[shelf])
}

func (o *Objects) get(shelf port.Bucket, key string) (object, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	found, ok := o.held[shelf][key]
	if !ok {
		return object{}, port.ErrNotFound
	}
	return found, nil
}

// Head implements orchestrator.Outputs.
func (o *Objects) Head(_ context.Context, shelf port.Bucket, key string) (port.Object, error) {
	found, err := o.get(shelf, key)
	return found.Object, err
}

// Keep implements orchestrator.Outputs.
func (o *Objects) Accept(_ context.Context, key, etag string) (port.Object, error) {
	found, err := o.get(port.Uploads, key)
	if err == nil && found.ETag != etag {
		err = port.ErrChanged
	}
	if err != nil {
		return port.Object{}, err
	}
	o.Lay(port.Accepted, key, found.ContentType, found.content)
	return found.Object, nil
}

// Open implements orchestrator.Outputs.
func (o *Objects) Open(_ context.Context, shelf port.Bucket, key string, span port.Span) (io.ReadCloser, port.Object, error) {
	found, err := o.get(shelf, key)
	if err != nil {
		return nil, port.Object{}, err
	}
	begin := min(span.Offset, found.Size)
	end := found.Size
	if span.Length > 0 {
		end = min(begin+span.Length, end)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	var body io.Reader = strings.NewReader(found.content[begin:end])
	if o.cut >= 0 {
		body = io.MultiReader(io.LimitReader(body, o.cut), broken{})
	}
	return io.NopCloser(body), found.Object, nil
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// PresignGet implements orchestrator.Outputs.
func (o *Objects) PresignGet(_ context.Context, key, _, _ string, _ time.Duration) (string, error) {
	return "https://bucket.example/" + key + "?" + url.Values{"X-Amz-Signature": {"secret"}}.Encode(), nil
}

// PresignPut implements orchestrator.Outputs.
func (o *Objects) PresignPut(ctx context.Context, key, _ string, ttl time.Duration) (string, error) {
	return o.PresignGet(ctx, key, "", "", ttl)
}

// Delete implements orchestrator.Outputs.
func (o *Objects) Delete(_ context.Context, shelf port.Bucket, key string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.held[shelf], key)
	return nil
}

// DeletePrefix implements orchestrator.Outputs.
func (o *Objects) DeletePrefix(_ context.Context, shelf port.Bucket, prefix string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for key := range o.held[shelf] {
		if strings.HasPrefix(key, prefix) {
			delete(o.held[shelf], key)
		}
	}
	return nil
}

// logs is a log that a test can read while it is written.
type logs struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
