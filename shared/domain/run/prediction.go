package run

import (
	"time"

	"github.com/sortie-dev/sortie/shared/domain/forecast"
)

// StartError returns the error of the prediction if e is the start of the run. r is the record as of the
// event.
func (r Run) StartError(e Event) (late time.Duration, covered, ok bool) {
	if e.Type != EventStarted || r.Prediction == nil {
		return 0, false, false
	}
	return r.Prediction.Error()
}

// predict records the prediction for the next attempt; nil removes it.
func (d *draft) predict(p *forecast.Prediction) {
	if p == nil {
		d.Prediction = nil
		return
	}
	predicted := *p
	predicted.At = d.now
	d.Prediction = &predicted
	if d.Work.Inference != nil && d.Attempt.Number == 0 {
		d.Expectation = predicted.Expectation()
	}
}

// predictUnlessWaited is like predict, but keeps the prediction of a first attempt that has waited
// because of a violated constraint. That prediction was made when the wait began.
func (d *draft) predictUnlessWaited(p *forecast.Prediction) {
	if d.Acting == nil || !d.Acting.Done || d.Attempt.Number > 0 || d.Prediction == nil {
		d.predict(p)
	}
}

// observeStart records when the predicted attempt started.
func (d *draft) observeStart() {
	if d.Prediction == nil || !d.Prediction.Started.IsZero() {
		return
	}
	predicted := *d.Prediction
	predicted.Started = d.now
	d.Prediction = &predicted
}
