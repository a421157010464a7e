// Package activity counts the runs of a tenant by the time of their creation: by outcome, by
// cause of failure and by work. It has no I/O and no clock.
//
// Each Window is divided into slots of equal length. A run belongs to the slot of its creation
// in each window. The events of a run change the slot: Slot.Count is called once for its first
// event and once for its end. A store keeps a fixed number of slots for each window, and
// replaces the oldest one.
package activity
