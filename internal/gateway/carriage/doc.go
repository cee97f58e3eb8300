// Package carriage makes the carriers of a bearer from its profile. It is the one room that knows them by name: a new carrier is made
// here, and passes TestEveryCarrier in internal/gateway.
package carriage
