package deployed

import (
	"time"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo"
	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/process"
)

const (
	// answerLook is the interval at which a reader polls for tokens. Tokens are written at the
	// same interval.
	answerLook = 300 * time.Millisecond
	// answerMargin is added to the retention of a task's record, which counts from the task's
	// end, to get the retention of its stream of tokens.
	answerMargin = 24 * time.Hour
)

// Answers returns the streams of inference tasks in the table of store.
func Answers(p *process.Process, store *dynamo.Store, config runs.Config) port.AnswerFeed {
	feed, err := dynamo.NewAnswers(store, dynamo.FeedConfig{Retention: config.Policy.RecordRetention + answerMargin, WaitInterval: answerLook})
	p.Check(err)
	return feed
}
