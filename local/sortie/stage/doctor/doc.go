// Package doctor checks what a stage on AWS needs, in the order in which a person sets
// it up, and says for each part that is not ready what to do.
//
//	cdk.json ──cdk synth──► template ──plan.Of──► Plan ─┐
//	AWS, Fly, the buckets, DNS ────────────────────────┴──Run──► a Finding for each part
//
// The Plan is what the template contains: a secret, an app, a bucket, a mail or a domain
// that the template does not have is not checked. Run changes nothing. Each check has a
// time limit of its own and the next one runs whatever it found. No Finding has the value
// of a secret.
package doctor
