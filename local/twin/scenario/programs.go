package scenario

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// program is the drawn program of an attempt.
type program struct {
	w *world
	m *machine

	length time.Duration
	// lost means that the machine is lost after a part of the length.
	lost bool
	code int
	// silent means that its report does not arrive.
	silent   bool
	envelope contract.TaskEnvelope
}

// draw draws the program of an attempt. What is drawn depends on the seed, the run and the
// attempt only, so that variants of a scenario compare the same work.
func (w *world) draw(m *machine) program {
	p := program{w: w, m: m}
	key := hashOf(fmt.Sprintf("%s/%d", w.tally.keyOf(m.spec), m.spec.Owner.Attempt))
	random := rand.New(rand.NewPCG(w.s.Seed(), key)) //nolint:gosec // the seed must determine everything
	of := w.s.settingOf(m.spec.JobID)
	normal, fails, lost, part, silent := random.NormFloat64(), random.Float64(), random.Float64(), random.Float64(), random.Float64()
	p.length = of.Duration.draw(normal)
	if f := of.Fails; f != nil && fails < f.Share {
		if p.code = 1; f.Code != nil {
			p.code = *f.Code
		}
	}
	if of.Lost != nil && lost < *of.Lost {
		p.lost, p.length = true, time.Duration(part*float64(p.length))
	}
	if f := w.fault(LostCallbacks); f != nil {
		p.silent = silent < *f.Share
	}
	return p
}

// hashOf returns a number for a text.
func hashOf(text string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text)) // a hash returns no error
	return h.Sum64()
}

// settingOf returns the settings of a job.
func (s Scenario) settingOf(id string) Job {
	for _, j := range s.jobs {
		if j.definition.ID == id {
			return j.setting
		}
	}
	return Job{}
}

// draw returns the duration at a value of the standard normal distribution.
func (l Length) draw(normal float64) time.Duration {
	if l.Fixed != "" {
		return l.Fixed.Value()
	}
	const normal95 = 1.6448536 // 95 % of its values are less
	median, p95 := l.Median.Value(), l.P95.Value()
	spread := math.Log(float64(p95)/float64(median)) / normal95
	return time.Duration(float64(median) * math.Exp(spread*normal)).Round(time.Millisecond)
}

// begin starts the program of a machine.
func (w *world) begin(m *machine) {
	p := w.draw(m)
	if err := json.Unmarshal([]byte(m.spec.Env[contract.EnvelopeVariable]), &p.envelope); err != nil {
		w.broken = fmt.Errorf("envelope of %s: %w", m.id, err)
	}
	w.time.After(p.length, p.end)
}

// The times of a report that gets no answer: it is repeated every reportPause for reportWithin.
const (
	reportPause  = 5 * time.Second
	reportWithin = time.Minute
)

// end ends the program: it reports its exit code, as programs under sortie-exec do, and exits.
func (p program) end() {
	w := p.w
	if p.m.phase != port.MachineRunning {
		return
	}
	if p.lost {
		w.runner.end(p.m, nil)
		return
	}
	if !p.silent {
		body, until := p.report(), w.time.Now.Add(reportWithin)
		for !w.post(p.envelope, body) && w.time.Now.Before(until) && p.m.phase == port.MachineRunning {
			w.time.Sleep(reportPause)
		}
	}
	w.runner.end(p.m, &port.Exit{Code: p.code, Requested: p.m.stopping})
}

// report returns the report of the program, and stores its output.
func (p program) report() contract.TaskCompleted {
	body := contract.TaskCompleted{
		Attempt: p.m.spec.Owner.Attempt, WorkerID: p.m.id, CompletedAt: p.w.time.Now, Outcome: contract.OutcomeSucceeded, Exit: &contract.Exit{Code: p.code},
	}
	succeeds := p.code == 0
	if of := p.envelope.Program; of != nil {
		succeeds = slices.Contains(of.SuccessCodes, p.code)
	}
	if !succeeds {
		body.Outcome = contract.OutcomeFailed
		body.Error = &contract.TaskError{Category: contract.CategoryUserCode, Message: fmt.Sprintf("exit code %d", p.code)}
		return body
	}
	if of := p.envelope.Program; of != nil && of.Output != nil && p.envelope.Output != nil {
		content := []byte("output of the scenario\n")
		p.w.objects.buckets[port.Uploads][p.envelope.Output.Key] = content
		body.Output = &contract.TaskOutput{OutputPath: p.envelope.Output.Key, ByteSize: new(int64(len(content)))}
	}
	return body
}

// post reports the end of a task to the server. It returns false without an answer.
func (w *world) post(to contract.TaskEnvelope, body contract.TaskCompleted) bool {
	text, err := json.Marshal(body)
	if err != nil {
		w.broken = fmt.Errorf("report: %w", err)
		return true
	}
	address := "http://127.0.0.1/v1/tasks/" + to.TaskID + "/completed"
	request, err := http.NewRequestWithContext(context.Background(), http.MethodPost, address, bytes.NewReader(text))
	if err != nil {
		w.broken = fmt.Errorf("report: %w", err)
		return true
	}
	request.RemoteAddr = "127.0.0.1:1"
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+to.TaskToken)
	answer := &response{header: http.Header{}, status: http.StatusOK}
	ok := w.call(func(ctx context.Context) { w.process.api.ServeHTTP(answer, request.WithContext(ctx)) })
	return ok && answer.status < http.StatusInternalServerError
}

// response is an http.ResponseWriter that keeps the status only.
type response struct {
	header http.Header
	status int
}

// Header implements http.ResponseWriter.
func (r *response) Header() http.Header { return r.header }

// WriteHeader implements http.ResponseWriter.
func (r *response) WriteHeader(status int) { r.status = status }

// Write implements http.ResponseWriter.
func (r *response) Write(p []byte) (int, error) { return len(p), nil }
