use mnemon_testkit::InRam;

mnemon_testkit::conformance!(ram, InRam::default());
