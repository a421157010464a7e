// Package secrets reads Sortie's secrets from AWS Secrets Manager: the tokens
// of clients, the token of the Machines API, and the keys to the outputs. Each
// is one secret with one JSON document. The key of events is a parameter of
// Systems Manager (package seed).
//
// A secret is read once in five minutes. A rotated one is used within that time, or ten seconds
// after the old one was refused. During an outage of Secrets Manager the last value remains in
// use. Incomplete documents are refused. Errors and log lines never contain a value or a part
// of one.
package secrets

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/fault"
)

// DefaultTTL is how long a value is used before it is read again.
const DefaultTTL = 5 * time.Minute

// readPause is the shortest time between two reads of one secret, even if its value is refused
// repeatedly.
const readPause = 10 * time.Second

// readLimit is how long a reader with an old value waits for a newer one.
const readLimit = 3 * time.Second

// Config configures the reading of secrets.
type Config struct {
	// TTL is how long a value is used before it is read again; 0 is DefaultTTL.
	TTL   time.Duration
	Clock clock.Clock
	// Log receives a record when an old value is used after a failed read.
	Log *slog.Logger
}

// Secret is one secret with its document in memory. It is safe for concurrent
// use.
type Secret[D Document] struct {
	source Source
	id     string
	config Config
	// known contains the state in memory. A goroutine that receives it must send it back.
	known chan known[D]
}

// Source reads the text of a secret.
type Source struct {
	// Text returns the text, or "" if it was never set.
	Text func(ctx context.Context) (string, error)
	// Fill is the command that sets the text.
	Fill string
}

type known[D Document] struct {
	document D
	// has is true if a document was read, at readAt.
	has    bool
	readAt time.Time
	// triedAt is the time of the last read, successful or not.
	triedAt time.Time
	refused bool
}

// Open returns the secret with this name or ARN. It makes no call.
func Open[D Document](cfg aws.Config, id string, config Config) (*Secret[D], error) {
	client := secretsmanager.NewFromConfig(cfg)
	return OpenFrom[D](id, config, Source{Fill: hint[D](id), Text: func(ctx context.Context) (string, error) {
		answer, err := client.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: &id})
		if _, absent := errors.AsType[*types.ResourceNotFoundException](err); absent {
			return "", nil
		}
		if err != nil {
			return "", err
		}
		return aws.ToString(answer.SecretString), nil
	}})
}

// OpenFrom returns the secret with this name in a source other than Secrets Manager. It makes
// no call.
func OpenFrom[D Document](id string, config Config, from Source) (*Secret[D], error) {
	var problems []error
	if id == "" {
		problems = append(problems, errors.New("its name is missing"))
	}
	if config.TTL < 0 {
		problems = append(problems, errors.New("its time to live is negative"))
	}
	if config.Clock == nil {
		problems = append(problems, errors.New("the clock is missing"))
	}
	if config.Log == nil {
		problems = append(problems, errors.New("the logger is missing"))
	}
	if err := errors.Join(problems...); err != nil {
		return nil, fmt.Errorf("cannot use the secret of the %s: %w", kindOf[D](), err)
	}
	if config.TTL == 0 {
		config.TTL = DefaultTTL
	}
	s := &Secret[D]{from, id, config, make(chan known[D], 1)}
	s.known <- known[D]{}
	return s, nil
}

// Get returns the document from memory, or reads it if that is too old. If the read fails it
// returns the old document, or an Unavailable fault without an old one.
func (s *Secret[D]) Get(ctx context.Context) (D, error) {
	var k known[D]
	select {
	case k = <-s.known:
	case <-ctx.Done():
		return k.document, fault.Wrap(ctx.Err(), fault.Unavailable, "a secret was not read in time")
	}
	defer func() { s.known <- k }()
	now := s.config.Clock.Now()
	fresh := k.has && !k.refused && now.Before(k.readAt.Add(s.config.TTL))
	if fresh || k.has && now.Before(k.triedAt.Add(readPause)) {
		return k.document, nil
	}
	k.triedAt = now
	if k.has {
		limited, cancel := context.WithTimeout(ctx, readLimit)
		defer cancel()
		ctx = limited
	}
	document, err := s.read(ctx)
	if err == nil {
		k.document, k.has, k.readAt, k.refused = document, true, now, false
		return document, nil
	}
	if !k.has {
		return document, fault.Wrap(err, fault.Unavailable, "a secret that this needs cannot be read now")
	}
	s.config.Log.WarnContext(ctx, "a secret cannot be read; its last value is used", "secret", nameOf(s.id), "error", err.Error())
	return k.document, nil
}

// Refused reports that a value of the document was refused and may have been
// rotated. The next Get reads it again.
func (s *Secret[D]) Refused() {
	k := <-s.known
	k.refused = true
	s.known <- k
}

func (s *Secret[D]) read(ctx context.Context) (D, error) {
	var none D
	text, err := s.source.Text(ctx)
	if err == nil && text == "" {
		return none, fmt.Errorf("the secret %s was never filled; %q does it", nameOf(s.id), s.source.Fill)
	}
	if err != nil {
		return none, fmt.Errorf("cannot read the secret %s: %w", nameOf(s.id), err)
	}
	var document D
	if err = json.Unmarshal([]byte(text), &document); err != nil {
		err = unreadable(err)
	} else {
		err = errors.Join(document.problems()...)
	}
	if err != nil {
		return none, fmt.Errorf("the secret %s is not usable; %q replaces it: %w", nameOf(s.id), s.source.Fill, err)
	}
	return document, nil
}

// unreadable describes a JSON error without the text.
func unreadable(err error) error {
	if field, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && field.Field != "" {
		return fmt.Errorf("%s is not of its type", field.Field)
	}
	return errors.New("it is no JSON document of its kind")
}
