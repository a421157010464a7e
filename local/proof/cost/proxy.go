package cost

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/local/proof/cost/units"
	"github.com/sortie-dev/sortie/shared/base/clock"
)

// Proxy is a proxy between functions and an emulator of AWS. It counts the billed units of
// their calls by function. A function's endpoint is the proxy's URL with the function's name as
// its path. It is safe for concurrent use.
//
// It requests the consumed capacity of single calls. DynamoDB Local reports a wrong capacity
// for transactions, so the proxy reads their items before and after. Functions see none of
// this.
type Proxy struct {
	next    *url.URL
	forward *httputil.ReverseProxy

	clock clock.Clock

	mu     sync.Mutex
	counts map[string]Usage
	own    map[string]time.Duration
}

// NewProxy returns a proxy for the emulator at the URL.
func NewProxy(emulator string, clock clock.Clock) (*Proxy, error) {
	next, err := url.Parse(emulator)
	if err != nil {
		return nil, fmt.Errorf("cannot count in front of %q: %w", emulator, err)
	}
	p := &Proxy{next: next, clock: clock, counts: map[string]Usage{}, own: map[string]time.Duration{}}
	// Keep the Host header, because it is part of the signature.
	p.forward = &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = next.Scheme, next.Host, r.In.Host
	}}
	return p, nil
}

// Take returns the counts since the last call, by function, and the time that each function
// waited for the counting.
func (p *Proxy) Take() (used map[string]Usage, own map[string]time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	used, own = p.counts, p.own
	p.counts, p.own = map[string]Usage{}, map[string]time.Duration{}
	return used, own
}

// aside makes a call of the proxy itself and adds its duration to the function's waiting time.
func (p *Proxy) aside(function string, do func()) {
	started := p.clock.Now()
	do()
	took := p.clock.Now().Sub(started)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.own[function] += took
}

func (p *Proxy) add(function string, used Usage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts[function] = p.counts[function].Plus(used)
}

// ServeHTTP counts a call and forwards it.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	target := r.Header.Get("X-Amz-Target")
	if target == "" {
		p.add("objects", objectCall(r))
		p.forward.ServeHTTP(w, r)
		return
	}
	function, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	r.URL.Path, r.URL.RawPath = "/", ""
	if operation, ok := strings.CutPrefix(target, "DynamoDB_20120810."); ok {
		p.table(w, r, function, operation)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, "cannot read the call", http.StatusBadGateway)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	p.add(function, call(target, body))
	p.forward.ServeHTTP(w, r)
}

// call returns the billed usage of a call to a service other than DynamoDB. Calls of Step
// Functions are free, but its transitions are billed. Heartbeats are counted because of their
// quota.
func call(target string, body []byte) Usage {
	service, operation, _ := strings.Cut(target, ".")
	switch service {
	case "TrentService":
		return Usage{Signatures: 1}
	case "secretsmanager":
		return Usage{SecretCalls: 1}
	case "AWSStepFunctions":
		if operation == "SendTaskHeartbeat" {
			return Usage{TaskHeartbeats: 1}
		}
	case "AmazonSQS":
		return Usage{QueueRequests: 1}
	case "AWSEvents":
		var put struct{ Entries []json.RawMessage }
		if operation == "PutEvents" && json.Unmarshal(body, &put) == nil {
			return Usage{Events: float64(len(put.Entries))}
		}
	}
	return nil
}

// objectCall returns the billed usage of a call to the object store. Reads are cheap, deletions
// are free, and everything else is expensive.
func objectCall(r *http.Request) Usage {
	asked := r.URL.Query()
	lists := asked.Has("list-type") || asked.Has("uploads") || asked.Has("uploadId") // lists of objects, uploads, or an upload's parts
	switch {
	case r.Method == http.MethodDelete:
		return nil
	case (r.Method == http.MethodGet || r.Method == http.MethodHead) && !lists:
		return Usage{BucketReads: 1}
	}
	return Usage{BucketWrites: 1}
}

// table forwards a call to DynamoDB and counts its units.
func (p *Proxy) table(w http.ResponseWriter, r *http.Request, function, operation string) {
	var in map[string]any
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, "cannot read the call", http.StatusBadGateway)
		return
	}
	var touched []key
	if operation == "TransactWriteItems" {
		touched = keysOf(in)
	} else {
		in["ReturnConsumedCapacity"] = "TOTAL"
	}
	var before, after []item
	p.aside(function, func() { before = p.items(r.Context(), r.Header, touched) })
	answer, err := p.send(r.Context(), r.Header, in)
	if err != nil {
		http.Error(w, "no answer from the emulator", http.StatusBadGateway)
		return
	}
	written := 0.0
	p.aside(function, func() { after = p.items(r.Context(), r.Header, touched) })
	for i := range touched {
		written += units.Transaction * units.Written(before[i], after[i], size)
	}
	used := Usage{WriteUnits: written}
	if units := consumed(answer.body); operation == "PutItem" || operation == "UpdateItem" || operation == "DeleteItem" {
		used[WriteUnits] = max(units, 1) // a refused write costs the size of its item
	} else if operation != "TransactWriteItems" {
		used = Usage{ReadUnits: max(units, leastRead(in))}
	}
	p.add(function, used)
	for name, values := range answer.header {
		if name != "Content-Length" {
			w.Header()[name] = values
		}
	}
	w.WriteHeader(answer.status)
	_, _ = w.Write(answer.body) // the client may have disconnected
}

// leastRead returns the units of a read that finds nothing, which DynamoDB Local reports as 0.
// It is half a unit for each Query and each item of a batch, or one if the read is strongly
// consistent (Amazon DynamoDB Developer Guide, "Capacity unit consumption").
func leastRead(in map[string]any) float64 {
	each := func(request map[string]any) float64 {
		if consistent, _ := request["ConsistentRead"].(bool); consistent {
			return 1
		}
		return 0.5
	}
	tables, batch := in["RequestItems"].(map[string]any)
	if !batch {
		return each(in)
	}
	total := 0.0
	for _, table := range tables {
		request, _ := table.(map[string]any)
		keys, _ := request["Keys"].([]any)
		total += float64(len(keys)) * each(request)
	}
	return total
}

// reply is a complete answer of the emulator.
type reply struct {
	status int
	header http.Header
	body   []byte
}

func (p *Proxy) send(ctx context.Context, header http.Header, in any) (reply, error) {
	body, err := json.Marshal(in)
	if err != nil {
		return reply{}, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.next.String()+"/", bytes.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	request.Header = header.Clone()
	for _, name := range []string{"Content-Length", "Accept-Encoding"} {
		request.Header.Del(name)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return reply{}, err
	}
	text, err := io.ReadAll(answer.Body)
	// The changed body has another checksum.
	answer.Header.Del("X-Amz-Crc32")
	return reply{answer.StatusCode, answer.Header, text}, errors.Join(err, answer.Body.Close())
}
