package simulation

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/contract"
	"github.com/sortie-dev/sortie/shared/limit"
	"github.com/sortie-dev/sortie/shared/port"
)

// worker is one process in a machine. It knows the worker contract, or the
// export contract alone.
type worker struct {
	w *world
	m *machine
	// name is its workerId.
	name     string
	modern   bool
	envelope contract.TaskEnvelope
	token    string
	// deaf: it ends for nobody. silent: it says nothing any more, and stays.
	deaf, silent bool
	// handlesSigterm: it reports a cancel on SIGTERM.
	handlesSigterm bool
	// until then it does nothing, though it lives.
	frozenUntil      time.Time
	cancelling, over bool
	// wasFrozen: it was, at some time.
	wasFrozen bool
}

// employ gives a machine its start and its workers' characters.
func (w *world) employ(m *machine) {
	if w.chance(w.plan.neverStart) {
		return
	}
	count := 1
	if w.chance(w.plan.clones) {
		count = 2
	}
	modern := w.chance(w.plan.modern)
	for i := range count {
		p := &worker{w: w, m: m, name: fmt.Sprintf("%s/%d", m.id, i+1), modern: modern, deaf: w.chance(w.plan.deaf)}
		p.handlesSigterm = modern && w.chance(0.5)
		if err := json.Unmarshal([]byte(m.spec.Env[contract.EnvelopeVariable]), &p.envelope); err != nil {
			w.broken("the envelope of %s cannot be read: %v", m.id, err)
		}
		p.token = p.envelope.TaskToken
		m.workers = append(m.workers, p)
	}
	begin := w.upTo(5 * time.Second)
	if w.chance(w.plan.quick) {
		begin = 0
	}
	w.soon(begin, func() {
		if m.phase != port.MachineCreating {
			return
		}
		m.phase = port.MachineRunning
		for _, p := range m.workers {
			p.begin()
		}
	})
}

// soon is after, but at once where there is no delay.
func (w *world) soon(d time.Duration, do func()) {
	if d == 0 {
		do()
		return
	}
	w.time.after(d, do)
}

// ended says whether the process is no more.
func (p *worker) ended() bool { return p.over || p.m.phase != port.MachineRunning }

// frozen says whether the process does nothing now.
func (p *worker) frozen() bool { return p.frozenUntil.After(p.w.time.now) }

// awake says whether the process lives and has beaten all its life.
func (p *worker) awake() bool { return !p.ended() && !p.silent && !p.wasFrozen }

// later makes the process do something, unless it has ended by then; one that is
// frozen does it when it is no more.
func (p *worker) later(d time.Duration, do func()) {
	p.w.time.after(d, func() { p.resume(do) })
}

func (p *worker) resume(do func()) {
	switch {
	case p.ended():
	case p.frozen():
		p.later(p.frozenUntil.Sub(p.w.time.now), do)
	default:
		do()
	}
}

// begin is the beginning of the process's life, drawn anew for each.
func (p *worker) begin() {
	w := p.w
	if p.ended() {
		return
	}
	if w.chance(w.plan.freezes) {
		p.later(w.upTo(3*time.Minute), func() {
			p.wasFrozen = true
			p.frozenUntil = w.time.now.Add(w.upTo(5 * time.Minute))
			w.note("%s is frozen for %s", p.name, p.frozenUntil.Sub(w.time.now))
		})
	}
	if p.modern {
		p.introduce()
		return
	}
	pause := w.upTo(90 * time.Second)
	if w.chance(w.plan.quick) {
		pause = 0
	}
	w.soon(pause, func() { p.resume(p.finish) })
}

// exit ends the process; the machine ends with its last one.
func (p *worker) exit(code int) {
	if p.ended() {
		return
	}
	p.over = true
	for _, other := range p.m.workers {
		if !other.over {
			return
		}
	}
	exit := port.Exit{Code: code, Requested: p.m.stopping}
	if code > 128 {
		exit.Signal = code - 128
	}
	p.w.machines.end(p.m, exit)
}

// terminate is SIGTERM.
func (p *worker) terminate() {
	switch {
	case p.deaf:
	case p.handlesSigterm:
		p.abandon("SIGTERM")
	default:
		p.exit(143)
	}
}

// finish is the end of the work, as it is drawn.
func (p *worker) finish() {
	w := p.w
	if p.cancelling {
		return
	}
	switch draw := w.random.Float64(); {
	case draw < w.plan.lost:
		p.exit(1)
	case draw < w.plan.lost+0.03:
		w.machines.end(p.m, port.Exit{Code: 137, Signal: 9, OOM: true})
	case draw < w.plan.lost+0.05:
		w.note("%s says nothing any more", p.name)
		p.silent = true
	case draw < w.plan.lost+0.07:
		w.note("%s never ends", p.name)
	case p.modern:
		p.complete(p.result())
	case draw < w.plan.lost+0.11:
		p.report(contract.Callback{Status: contract.StatusError, Error: "Failed to fetch manifest"})
	case draw < w.plan.lost+0.14:
		p.report(contract.Callback{Status: contract.StatusSuccess})
	default:
		upload := p.upload(limit.OutputPrefix(p.task()) + "out.xml")
		p.report(contract.Callback{
			Status: contract.StatusSuccess, OutputKey: upload.OutputPath, OutputFileName: upload.FileName, OutputFileSize: upload.ByteSize,
		})
	}
}

func (p *worker) task() string { return p.m.spec.Env["TASK_ID"] }

func (p *worker) attempt() int { return p.m.spec.Owner.Attempt }

// upload leaves an output in the bucket, or says so without.
func (p *worker) upload(key string) contract.TaskOutput {
	w, body := p.w, outputOf(p.task(), p.attempt())
	size, good := int64(len(body)), true
	if w.chance(0.04) {
		size, good = size+1, false
	}
	if w.chance(0.04) {
		good = false
	} else {
		w.buckets.buckets[port.Uploads][key] = body
	}
	if !good {
		w.facts(p.task(), p.attempt()).bad = true
	}
	return contract.TaskOutput{OutputPath: key, FileName: "out.xml", ByteSize: &size}
}

// outputOf is what an attempt uploads.
func outputOf(task string, attempt int) []byte {
	return fmt.Appendf(nil, "<out task=%q attempt='%d'/>", task, attempt)
}

// report posts the callback until it is answered or the machine is gone, and
// then exits. A call can be lost, or arrive twice, or long after.
func (p *worker) report(body contract.Callback) {
	w := p.w
	body.TaskID = p.task()
	if w.chance(w.plan.late) {
		w.time.after(w.upTo(10*time.Minute), func() { p.post(body) })
		p.later(w.upTo(2*time.Second), func() { p.exit(0) })
		return
	}
	if !p.post(body).given() {
		p.later(time.Second+w.upTo(4*time.Second), func() { p.report(body) })
		return
	}
	if w.chance(w.plan.late) {
		w.time.after(w.upTo(time.Minute), func() { p.post(body) })
	}
	if !w.chance(0.1) { // else it lingers
		p.later(w.upTo(3*time.Second), func() { p.exit(0) })
	}
}

func (p *worker) post(body contract.Callback) answer {
	return p.send(call{route: "callback", url: p.m.spec.Env["CALLBACK_URL"], body: body, success: body.Status == contract.StatusSuccess})
}
