package deployed

import (
	"time"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo"
	"github.com/sortie-dev/sortie/shared/lambdakit/process"
	"github.com/sortie-dev/sortie/shared/orchestrator"
	"github.com/sortie-dev/sortie/shared/port"
)

const (
	// answerLook is how often a reader looks for tokens: as often as they are written.
	answerLook = 300 * time.Millisecond
	// answerMargin is how much longer a stream of tokens is kept than the record of its
	// task, whose retention counts from its end.
	answerMargin = 24 * time.Hour
)

// Answers returns the streams of inference tasks in the table of a store.
func Answers(p *process.Process, store *dynamo.Store, config orchestrator.Config) port.AnswerFeed {
	feed, err := dynamo.NewAnswers(store, dynamo.FeedConfig{Retention: config.Policy.RecordRetention + answerMargin, WaitInterval: answerLook})
	p.Check(err)
	return feed
}
