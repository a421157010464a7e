package machines

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// Worker is one process in a machine. It uses the worker contract, or only the export contract.
type Worker struct {
	w *Machines
	m *Machine
	// Name is its worker id.
	Name           string
	workerContract bool
	// exits means that the exit code of the process is its report.
	exits    bool
	Envelope contract.TaskEnvelope
	Token    string
	// ignoresSignals means that it does not stop on SIGTERM or a refusal. silent means that it
	// makes no more calls.
	ignoresSignals, silent bool
	// obeysDeadline means that it ends at the envelope's deadline. patient means that it
	// repeats a lost call only after a heartbeat interval.
	obeysDeadline, patient bool
	// handlesSigterm means that it reports a cancellation on SIGTERM.
	handlesSigterm bool
	// frozenUntil is the time until which the process is stopped.
	frozenUntil        time.Time
	cancelling, exited bool
	// Beating means that it has sent its first heartbeat.
	Beating bool
	// wasFrozen means that it has been frozen at least once.
	wasFrozen bool
	// Refused counts its calls in a row that reached no process.
	Refused int
}

// startWorkers schedules the start of a machine and draws the behaviour of its workers.
func (w *Machines) startWorkers(m *Machine) {
	if w.Injects("program that never started", w.Plan.NeverStart) {
		return
	}
	w.addWorkers(m)
	begin := w.UpTo(5 * time.Second)
	if w.Chance(w.Plan.Immediate) {
		begin = 0
	}
	w.soon(begin, m.start)
}

// addWorkers draws the behaviour of the workers of a machine.
func (w *Machines) addWorkers(m *Machine) {
	count := 1
	if w.Injects("cloned worker", w.Plan.Clones) {
		count = 2
	}
	modern := w.Chance(w.Plan.WorkerContract)
	for i := range count {
		p := &Worker{w: w, m: m, Name: fmt.Sprintf("%s/%d", m.ID, i+1), workerContract: modern, ignoresSignals: w.Chance(w.Plan.IgnoreSignals)}
		p.exits = !modern && m.Spec.Env[contract.CompletionVariable] == string(spec.CompletionExit)
		p.handlesSigterm = modern && w.Chance(0.5)
		p.obeysDeadline, p.patient = w.Chance(0.5), w.Chance(0.3)
		if err := json.Unmarshal([]byte(m.Spec.Env[contract.EnvelopeVariable]), &p.Envelope); err != nil {
			w.Fail("cannot decode the envelope of %s: %v", m.ID, err)
		}
		p.Token = p.Envelope.TaskToken
		m.Workers = append(m.Workers, p)
	}
}

// start starts the workers of a machine, unless it has started or is ending.
func (m *Machine) start() {
	if m.Phase != port.MachineCreating {
		return
	}
	m.RanAt = m.On.Time.Now
	m.On.checks.CheckRuns(m)
	m.enter(port.MachineRunning)
	for _, p := range m.Workers {
		p.start()
	}
}

// soon runs do after d, immediately if d is 0.
func (w *Machines) soon(d time.Duration, do func()) {
	if d == 0 {
		do()
		return
	}
	w.Time.After(d, do)
}

// gone reports whether the process has ended.
func (p *Worker) gone() bool { return p.exited || p.m.Phase != port.MachineRunning }

// frozen reports whether the process is stopped now.
func (p *Worker) frozen() bool { return p.frozenUntil.After(p.w.Time.Now) }

// Healthy reports whether the process runs and was never frozen or silent.
func (p *Worker) Healthy() bool { return !p.gone() && !p.silent && !p.wasFrozen }

// later schedules do in the process. The call is dropped if the process has ended by then, and
// delayed while the process is frozen.
func (p *Worker) later(d time.Duration, do func()) {
	p.w.Time.After(d, func() { p.resume(do) })
}

func (p *Worker) resume(do func()) {
	switch {
	case p.gone():
	case p.frozen():
		p.later(p.frozenUntil.Sub(p.w.Time.Now), do)
	default:
		do()
	}
}

// start starts the process.
func (p *Worker) start() {
	w := p.w
	if p.gone() {
		return
	}
	if w.Injects("frozen worker", w.Plan.Freezes) {
		p.later(w.UpTo(w.Longest/2), func() {
			p.wasFrozen = true
			p.frozenUntil = w.Time.Now.Add(w.UpTo(w.Longest / 2))
			w.Note("%s is frozen for %s", p.Name, p.frozenUntil.Sub(w.Time.Now))
		})
	}
	if p.workerContract {
		p.reportStarted()
		return
	}
	pause := w.UpTo(min(90*time.Second, w.longestWork()))
	if p.m.isServer() {
		pause = w.UpTo(w.Longest)
	}
	if w.Chance(w.Plan.Immediate) {
		pause = 0
	}
	w.soon(pause, func() { p.resume(p.endWork) })
}

// Exit ends the process. The machine ends with its last process.
func (p *Worker) Exit(code int) {
	if p.gone() {
		return
	}
	p.exited = true
	for _, other := range p.m.Workers {
		if !other.exited {
			return
		}
	}
	exit := port.Exit{Code: code, Requested: p.m.stopping}
	if code > 128 {
		exit.Signal = code - 128
	}
	p.w.end(p.m, exit)
}

// terminate handles SIGTERM.
func (p *Worker) terminate() {
	switch {
	case p.ignoresSignals:
	case p.handlesSigterm:
		p.reportCancelled("SIGTERM")
	default:
		p.Exit(143)
	}
}

// endWork draws the end of the work.
func (p *Worker) endWork() {
	w := p.w
	if p.cancelling || p.m.isServer() && w.IsHealed() {
		return
	}
	switch draw := w.Random.Float64(); {
	case draw < w.Plan.Lost:
		p.Exit(1)
	case draw < w.Plan.Lost+0.03:
		w.end(p.m, port.Exit{Code: 137, Signal: 9, OOM: true})
	case draw < w.Plan.Lost+0.05:
		w.Note("%s makes no more calls", p.Name)
		p.silent = true
	case draw < w.Plan.Lost+0.07:
		w.Note("%s does not end", p.Name)
	case p.workerContract:
		p.complete(p.result())
	case p.exits:
		p.Exit([]int{0, 0, 0, 0, 1, 2, 75}[w.Random.IntN(7)])
	case draw < w.Plan.Lost+0.11:
		p.report(contract.Callback{Status: contract.StatusError, Error: "Failed to fetch manifest"})
	case draw < w.Plan.Lost+0.14:
		p.report(contract.Callback{Status: contract.StatusSuccess})
	default:
		upload := p.upload(limit.OutputPrefix(p.Task()) + "out.xml")
		p.report(contract.Callback{
			Status: contract.StatusSuccess, OutputKey: upload.OutputPath, OutputFileName: upload.FileName, OutputFileSize: upload.ByteSize,
		})
	}
}

// Task returns the id of the task of the machine.
func (p *Worker) Task() string { return p.m.Spec.Env["TASK_ID"] }

// Attempt returns the number of the attempt of the machine.
func (p *Worker) Attempt() int { return p.m.Spec.Owner.Attempt }

// upload stores an output in the bucket and returns its report. Sometimes it stores nothing or
// reports a wrong size.
func (p *Worker) upload(key string) contract.TaskOutput {
	w, body := p.w, OutputOf(p.Task(), p.Attempt())
	size, good := int64(len(body)), true
	if w.Chance(0.04) {
		size, good = size+1, false
	}
	if w.Chance(0.04) {
		good = false
	} else {
		w.Buckets.Buckets[port.Uploads][key] = body
	}
	if !good {
		w.Attempt(p.Task(), p.Attempt()).DefectiveOutput = true
	}
	return contract.TaskOutput{OutputPath: key, FileName: "out.xml", ByteSize: &size, Digest: fmt.Sprintf("sha256:%x", sha256.Sum256(body))}
}

// OutputOf returns the output of an attempt.
func OutputOf(task string, attempt int) []byte {
	return fmt.Appendf(nil, "<out task=%q attempt='%d'/>", task, attempt)
}

// report repeats the callback until it is answered or the machine is gone, and then exits. A
// call can be lost, repeated or delayed.
func (p *Worker) report(body contract.Callback) {
	w := p.w
	body.TaskID = p.Task()
	if w.Injects("late call of a worker", w.Plan.Late) {
		w.Time.After(w.UpTo(10*time.Minute), func() { p.post(body) })
		p.later(w.UpTo(2*time.Second), func() { p.Exit(0) })
		return
	}
	if !p.post(body).conclusive() {
		p.later(time.Second+w.UpTo(4*time.Second), func() { p.report(body) })
		return
	}
	if w.Injects("late call of a worker", w.Plan.Late) {
		w.Time.After(w.UpTo(time.Minute), func() { p.post(body) })
	}
	if !w.Chance(0.1) { // otherwise the process stays
		p.later(w.UpTo(3*time.Second), func() { p.Exit(0) })
	}
}

func (p *Worker) post(body contract.Callback) Answer {
	return p.send(Call{Route: "callback", url: p.m.Spec.Env["CALLBACK_URL"], body: body, Successful: body.Status == contract.StatusSuccess})
}

// longestWork limits the work of most workers.
func (w *Machines) longestWork() time.Duration {
	if w.Contended() || w.Admitting() {
		return 25 * time.Second
	}
	return w.Longest / 2
}

// isServer reports whether the machine runs a replica.
func (m *Machine) isServer() bool { return m.Spec.Env["ENGINE_REPLICA"] != "" }
