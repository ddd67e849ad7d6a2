//! The commands about the settings that change without a deployment.
