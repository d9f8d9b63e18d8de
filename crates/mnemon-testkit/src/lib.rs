//! The conformance suite every store must pass, and fakes for the ports.
