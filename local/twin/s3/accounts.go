package s3

import (
	"encoding/json"
	"fmt"

	"github.com/versity/versitygw/auth"
	"github.com/versity/versitygw/s3err"
)

// accounts is the server's fixed list of two users.
type accounts struct{ owner, worker Keys }

// GetUserAccount returns an account by its access key id.
func (a accounts) GetUserAccount(id string) (auth.Account, error) {
	switch id {
	case a.owner.ID:
		return auth.Account{Access: a.owner.ID, Secret: a.owner.Secret, Role: auth.RoleAdmin}, nil
	case a.worker.ID:
		return auth.Account{Access: a.worker.ID, Secret: a.worker.Secret, Role: auth.RoleUser}, nil
	}
	return auth.Account{}, auth.ErrNoSuchUser
}

// ResolveAccounts returns the ids that belong to no account.
func (a accounts) ResolveAccounts(ids []string) ([]string, error) {
	var unknown []string
	for _, id := range ids {
		if _, err := a.GetUserAccount(id); err != nil {
			unknown = append(unknown, id)
		}
	}
	return unknown, nil
}

func (accounts) CreateAccount(auth.Account) error                  { return errFixed() }
func (accounts) UpdateUserAccount(string, auth.MutableProps) error { return errFixed() }
func (accounts) DeleteUserAccount(string) error                    { return errFixed() }
func (accounts) ListUserAccounts() ([]auth.Account, error)         { return nil, errFixed() }
func (accounts) Shutdown() error                                   { return nil }

func errFixed() error { return s3err.GetAPIError(s3err.ErrAdminMethodNotSupported) }

// workerPolicy allows what R2's "Object Read & Write" token for one bucket
// allows.
func workerPolicy(bucket, worker string) ([]byte, error) {
	type statement struct {
		Effect    string
		Principal map[string]string
		Action    []string
		Resource  []string
	}
	policy, err := json.Marshal(struct{ Statement []statement }{[]statement{{
		Effect:    "Allow",
		Principal: map[string]string{"AWS": worker},
		Action: []string{
			"s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload",
			"s3:ListMultipartUploadParts", "s3:ListBucket", "s3:ListBucketMultipartUploads",
		},
		Resource: []string{"arn:aws:s3:::" + bucket, "arn:aws:s3:::" + bucket + "/*"},
	}}})
	if err != nil {
		return nil, fmt.Errorf("cannot write the worker's policy: %w", err)
	}
	return policy, nil
}
