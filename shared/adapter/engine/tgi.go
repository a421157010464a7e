package engine

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// tgi is Text Generation Inference. Every error of a stream has status 200 and is an event with
// an error type. It accepts only prompts, no messages, and has one model.
type tgi struct{}

type tgiParameters struct {
	MaxNewTokens int      `json:"max_new_tokens"`
	Stop         []string `json:"stop,omitempty"`
	Seed         *int64   `json:"seed,omitempty"`
	Temperature  *float64 `json:"temperature,omitempty"`
	TopP         *float64 `json:"top_p,omitempty"`
	// DoSample makes the parameters apply. Without it the most likely token is always chosen.
	DoSample bool `json:"do_sample"`
	// Details asks for the finish reason and the numbers of tokens.
	Details bool `json:"details"`

	Grammar           *tgiGrammar `json:"grammar,omitempty"`
	FrequencyPenalty  *float64    `json:"frequency_penalty,omitempty"`
	RepetitionPenalty *float64    `json:"repetition_penalty,omitempty"`
	TopK              *int        `json:"top_k,omitempty"`
}

// tgiGrammar makes the answer match a JSON schema.
type tgiGrammar struct {
	Type  string          `json:"type"`
	Value json.RawMessage `json:"value"`
}

func (tgi) generation(g port.Generation) (string, any, error) {
	if len(g.Messages) > 0 {
		return "", nil, fault.New(fault.InvalidParams, "messages: the engine tgi continues a prompt, it takes no messages")
	}
	p := tgiParameters{
		MaxNewTokens: g.MaxTokens, Stop: g.Stop, Seed: g.Seed, Temperature: g.Temperature, TopP: g.TopP,
		DoSample: g.Temperature == nil || *g.Temperature > 0, Details: true,
	}
	if !p.DoSample {
		p.Temperature = nil // TGI refuses 0
	}
	var sent any = p
	if o := g.Options; o != nil {
		p.FrequencyPenalty, p.RepetitionPenalty = o.Sampling.FrequencyPenalty, o.Sampling.RepetitionPenalty
		if k := o.Sampling.TopK; k != nil && *k > 0 { // TGI refuses others, which mean all tokens
			p.TopK = k
		}
		if o.Format.Type == port.FormatSchema {
			p.Grammar = &tgiGrammar{"json", o.Format.Schema}
		}
		var err error
		if sent, err = withExtra(p, o.Extra); err != nil {
			return "", nil, err
		}
	}
	return "/generate_stream", map[string]any{"inputs": g.Prompt, "parameters": sent}, nil
}

func (tgi) read(data []byte, a *answer) error {
	var e struct {
		Token struct {
			Text    string `json:"text"`
			Special bool   `json:"special"`
		} `json:"token"`
		GeneratedText *string `json:"generated_text"`
		Details       *struct {
			FinishReason string `json:"finish_reason"`
			Generated    count  `json:"generated_tokens"`
			Input        count  `json:"input_length"`
		} `json:"details"`
		Error string `json:"error"`
		Kind  string `json:"error_type"`
	}
	if err := json.Unmarshal(data, &e); err != nil {
		return fault.Wrap(err, fault.WorkerReset, "the engine sent an unexpected event after %d pieces", a.pieces)
	}
	if e.Error != "" || e.Kind != "" {
		return a.failed(short(e.Error), tgiFault(e.Kind))
	}
	if !e.Token.Special {
		a.text = e.Token.Text
	}
	if e.GeneratedText == nil {
		return nil
	}
	a.finish, a.done = port.FinishStop, true
	if d := e.Details; d != nil {
		a.usage = usageOf(d.Input, d.Generated, 0)
		return a.end(d.FinishReason)
	}
	return nil
}

// tgiFault returns the code for an error type.
func tgiFault(kind string) fault.Code {
	switch kind {
	case "validation":
		return fault.InvalidParams
	case "overloaded":
		return fault.ReplicaExhausted
	}
	return fault.PoolUnavailable
}

func (tgi) health() string { return "/health" }

func (tgi) capabilities(ctx context.Context, e *Engine) (port.EngineCapabilities, error) {
	var info struct {
		Model   string `json:"model_id"`
		Version string `json:"version"`
		Tokens  int    `json:"max_total_tokens"`
		Slots   int    `json:"max_concurrent_requests"`
		// Batch is the number of tokens of all running requests.
		Batch int `json:"max_batch_total_tokens"`
	}
	if err := e.get(ctx, "/info", &info); err != nil {
		return port.EngineCapabilities{}, err
	}
	return port.EngineCapabilities{
		Version: info.Version, Models: []string{info.Model}, ContextTokens: info.Tokens, Slots: info.Slots, KVTokens: info.Batch,
		Workloads: []port.Workload{port.WorkloadCompletion},
	}, nil
}

func (tgi) series() map[string]loadValue {
	return map[string]loadValue{"tgi_batch_current_size": running, "tgi_queue_size": waiting}
}

func (tgi) refusal(r refusal) *fault.Fault {
	if r.status == http.StatusServiceUnavailable {
		return fault.New(fault.PoolUnavailable, "the engine is not ready: %s", r.message)
	}
	return nil
}

func (tgi) vectors() bool { return false }
