// Package webhooks has the pages of webhooks, their deliveries and replays.
package webhooks
